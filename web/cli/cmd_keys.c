/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep keys: certificates and tokens of one cluster. */
#include "config.h"
#include "web/cli/cli.h"
#include "proto/base/clock.h"
#include "proto/wire/keys.h"
#include "web/http/tokens.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define KEYS_YEAR_S (365 * 86400ll)

/* Without names of its own a collector has those that this host knows. */
static int
keys_init(const char *dir, const char *const *names, size_t count, int64_t now_s,
	char *text, size_t size)
{
	char host[LS_HOST_NAME_MAX_BYTES] = "";
	const char *const own[] = { host, "localhost", "127.0.0.1", "::1" };
	int rc = ls_keys_init(dir, now_s, text, size);

	if (rc != 0)
		return rc;
	if (count == 0) {
		(void)gethostname(host, sizeof(host) - 1); /* "": the names say no */
		names = own;
		count = sizeof(own) / sizeof(own[0]);
	}
	return ls_keys_issue(dir, LS_TLS_COLLECTOR, names, count,
		now_s - LS_KEYS_EARLY_S, now_s + KEYS_YEAR_S, text, size);
}

/* Prints a new token: nobody can read it again. */
static int
keys_token(const char *dir, const char *name, const char *scope, char *text,
	size_t size)
{
	char token[LS_TOKEN_BYTES];
	int rc = ls_tokens_add(dir, name, scope, token, text, size);

	if (rc == 0)
		(void)printf("%s\n", token);
	return rc;
}

/* Ends the certificates and tokens of a name. The tokens go last: their file can be read
 * and crl.pem was written beside it, so that no failure leaves half of them. */
static int
keys_revoke(const char *dir, const char *name, int64_t now_s, char *text, size_t size)
{
	struct ls_tokens *tokens = NULL;
	int rc = ls_tokens_read(dir, &tokens, text, size), removed = 0;

	ls_tokens_free(tokens);
	if (rc == 0)
		rc = ls_keys_revoke(dir, name, now_s, text, size);
	if (rc == 0 || rc == -LS_EUNKNOWN)
		removed = ls_tokens_remove(dir, name, text, size);
	if (rc == -LS_EUNKNOWN && removed == 0)
		(void)snprintf(text, size, "%s: has no certificate and no token by %s",
			name, dir);
	return removed > 0 ? 0 : removed < 0 ? removed : rc;
}

int
ls_cmd_keys(struct ls_cli *cli, int argc, char **argv)
{
	const char *const *words = (const char *const *)argv, *const *names = words + 2;
	const char *action = argc >= 2 ? words[0] : "";
	int64_t now_s = ls_clock_wall_ns() / 1000000000;
	size_t count = argc >= 2 ? (size_t)argc - 2 : 0;
	const char *dir = argc >= 2 ? words[1] : "";
	char text[LS_TLS_TEXT_MAX_BYTES] = "";
	int rc = 0;

	if (strcmp(action, "init") == 0) {
		rc = keys_init(dir, names, count, now_s, text, sizeof(text));
	} else if (strcmp(action, "agent") == 0 && count > 0) {
		for (size_t i = 0; rc == 0 && i < count; i++)
			rc = ls_keys_issue(dir, LS_TLS_AGENT, names + i, 1,
				now_s - LS_KEYS_EARLY_S, now_s + KEYS_YEAR_S, text,
				sizeof(text));
	} else if (strcmp(action, "revoke") == 0 && count > 0) {
		for (size_t i = 0; rc == 0 && i < count; i++)
			rc = keys_revoke(dir, names[i], now_s, text, sizeof(text));
	} else if (strcmp(action, "token") == 0 && count == 2) {
		rc = keys_token(dir, names[0], names[1], text, sizeof(text));
	} else {
		(void)fprintf(stderr,
			"lockstep: usage: lockstep keys init DIR [NAME]..., agent DIR NAME..., "
			"token DIR NAME read|write, revoke DIR NAME...\n");
		return LS_EXIT_USAGE;
	}
	if (rc != 0)
		(void)fprintf(stderr, "lockstep: %s\n",
			ls_term_safe(cli->term, text, "failed"));
	return rc == 0		     ? LS_EXIT_OK
		: rc == -LS_ERANGE   ? LS_EXIT_USAGE
		: rc == -LS_EUNKNOWN ? LS_EXIT_UNKNOWN
				     : LS_EXIT_FOUND;
}
