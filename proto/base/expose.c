/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/expose.h"

#include <event2/buffer.h>

void
ls_expose_label(struct evbuffer *out, const char *name, const char *value, int first)
{
	(void)evbuffer_add_printf(out, "%s%s=\"", first ? "" : ",", name);
	for (; *value != '\0'; value++) {
		if (*value == '\n')
			(void)evbuffer_add(out, "\\n", 2);
		else if (*value == '"' || *value == '\\')
			(void)evbuffer_add_printf(out, "\\%c", *value);
		else
			(void)evbuffer_add(out, value, 1);
	}
	(void)evbuffer_add(out, "\"", 1);
}

void
ls_expose_family(struct evbuffer *out, const char *name, const char *type,
	const char *help)
{
	(void)evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
		type);
}

void
ls_expose_number(struct evbuffer *out, const char *name, const char *type,
	const char *help, double value)
{
	ls_expose_family(out, name, type, help);
	/* lost without memory */
	(void)evbuffer_add_printf(out, "%s %.17g\n", name, value);
}
