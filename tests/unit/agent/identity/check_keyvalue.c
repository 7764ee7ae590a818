/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/keyvalue.h"

#include <stdio.h>
#include <string.h>
#include "tests/support/harness.h"

#define TEXT(s) s, sizeof(s) - 1

/* Everything told, as "key=value;". */
static char told[1024];

static void
tell(void *arg, const struct ls_keyvalue *kv)
{
	size_t used = strlen(told);

	ck_assert_ptr_eq(arg, told);
	(void)snprintf(told + used, sizeof(told) - used, "%.*s=%.*s;", (int)kv->key_len,
		kv->key, (int)kv->value_len, kv->value);
}

static void
setup(void)
{
	told[0] = '\0';
}

LS_CASE(texts, setup, NULL);

LS_TEST(texts, tpu_env_is_cut_at_the_first_colon)
{
	size_t bad = ls_keyvalue_tpu_env(
		TEXT("ACCELERATOR_TYPE: 'v4-256'\n"
		     "VBARCONTROL_AGENT_DOCKER_URL: 'gcr.io/x:1@sha256:ab'\r\n"
		     "\n  WORKER_ID: \"0\"\nPLAIN: 7\nQUOTE: 'it''s'\nEMPTY: ''\nHALF: 'x\nLONE: '\n"
		     "no line\n: 'no key'\n"),
		tell, told);

	ck_assert_str_eq(told,
		"ACCELERATOR_TYPE=v4-256;VBARCONTROL_AGENT_DOCKER_URL=gcr.io/x:1@sha256:ab;"
		"WORKER_ID=0;PLAIN=7;QUOTE=it''s;EMPTY=;HALF='x;LONE=';");
	ck_assert_uint_eq(bad, 2);
}

LS_TEST(texts, environ_is_cut_at_the_first_equals_sign)
{
	ck_assert_uint_eq(ls_keyvalue_environ(TEXT("A=1\0B=2=3\0\0junk\0=x\0C="), '\0',
				  tell, told),
		2);
	ck_assert_str_eq(told, "A=1;B=2=3;C=;");
	told[0] = '\0';
	ck_assert_uint_eq(ls_keyvalue_environ(TEXT("A=1\nB= 2\n"), '\n', tell, told),
		0);
	ck_assert_str_eq(told, "A=1;B= 2;");
}

LS_TEST(texts, labels_are_a_list)
{
	ck_assert_uint_eq(ls_keyvalue_labels(TEXT("a/b=1,c=,d,=e,f=g=h\n"), tell, told),
		2);
	ck_assert_str_eq(told, "a/b=1;c=;f=g=h;");
	ck_assert_uint_eq(ls_keyvalue_labels("", 0, tell, told), 0);
}

LS_TEST(texts, labels_file_is_unquoted)
{
	static char big[2048];

	ck_assert_uint_eq(
		ls_keyvalue_labels_file(
			TEXT("a/b=\"1\"\n\nc=\"q\\\"\\\\\"\nd=bare\ne=\"\nf=\"\"\n"),
			tell, told),
		2);
	ck_assert_str_eq(told, "a/b=1;c=q\"\\;f=;");
	memset(big, 'x', sizeof(big));
	big[0] = 'k';
	big[1] = '=';
	big[2] = big[sizeof(big) - 1] = '"';
	ck_assert_uint_eq(ls_keyvalue_labels_file(big, sizeof(big), tell, told), 1);
}

LS_TEST(texts, key_is_compared_whole)
{
	const struct ls_keyvalue kv = { "NAMEX", "v", 4, 1 };

	ck_assert(ls_keyvalue_is(&kv, "NAME"));
	ck_assert(!ls_keyvalue_is(&kv, "NAMEX"));
	ck_assert(!ls_keyvalue_is(&kv, "NAM"));
}
