/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libFuzzer: runs a fuzz target once over an empty input and over each
 * file named on the command line. Linked only where nothing else brings a main.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_FILE_MAX_BYTES (4u * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
fuzz_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *whole = NULL, *data = NULL;
	size_t len;
	int rc = -1;

	if (!f)
		goto out;
	whole = malloc(FUZZ_FILE_MAX_BYTES);
	if (!whole)
		goto out;
	len = fread(whole, 1, FUZZ_FILE_MAX_BYTES, f);
	if (ferror(f))
		goto out;
	/* To size, so that a sanitizer sees the first byte read beyond. */
	data = realloc(whole, len > 0 ? len : 1);
	if (!data)
		goto out;
	whole = NULL;
	(void)LLVMFuzzerTestOneInput(data, len); /* always 0; failures abort */
	rc = 0;
out:
	if (rc != 0)
		perror(path);
	free(whole);
	free(data);
	if (f)
		(void)fclose(f); /* only read from */
	return rc;
}

int
main(int argc, char **argv)
{
	uint8_t none[1] = { 0 };
	int status = EXIT_SUCCESS;

	(void)LLVMFuzzerTestOneInput(none, 0); /* as above */
	for (int i = 1; i < argc; i++)
		if (fuzz_file(argv[i]) != 0)
			status = EXIT_FAILURE;
	return status;
}
