/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include "agent/client/identity.h"

/* Prints who this process is, by the rules of the C library: check_python.py compares.
 */
int
main(void)
{
	struct ls_client_identity id;
	int i;

	ls_client_identity_resolve(NULL, &id);
	printf("%s\n%d\n%d\n%d\n%s\n%s\n%d\n%s\n", id.worker.job, id.worker.attempt,
		id.worker.rank, id.worker.world, id.worker.role, id.worker.slice,
		id.worker.chips, id.worker.host);
	for (i = 0; i < 8; i++)
		printf("%d%c", id.from[i], i < 7 ? ' ' : '\n');
	printf("%s", id.env);
	return 0;
}
