/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/conf.h"

#include "proto/base/conf_value.h"
#include "proto/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* What is being filled, and where the message of a failure goes. */
struct conf_ctx {
	const struct ls_conf_program *p;
	void *into;
	char *err_text;
	size_t err_size;
};

/* The options that every program has, behind its own. */
enum conf_builtin {
	CONF_HELP,
	CONF_VERSION,
	CONF_CONFIG,
	CONF_CHECK,
	CONF_PRINT,
	CONF_BUILTINS
};

static const char *const conf_builtins[CONF_BUILTINS] = { "help", "version", "config",
	"check-config", "print-config" };

/* What the command line says, before any of it is applied: values of the program's
 * options, then of the built-in ones; NULL: not given. */
struct conf_args {
	const char *value[LS_CONF_OPTIONS_MAX + CONF_BUILTINS];
};

/* Sections of a shared file; those of other programs are passed over. */
static const char *const conf_sections[] = { "agent", "collector", "lockstep" };
#define CONF_SECTION_COUNT (sizeof(conf_sections) / sizeof(conf_sections[0]))

/* Puts the message, which may quote anything, into err_text; returns rc. */
static int conf_fail(struct conf_ctx *c, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int
conf_fail(struct conf_ctx *c, int rc, const char *fmt, ...)
{
	char text[2 * LS_CONF_VALUE_MAX_BYTES];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	(void)ls_text_escape(c->err_text, c->err_size, text, strlen(text));
	return rc;
}

/* Name of an option as a file key (lower) or part of an environment variable (upper).
 */
static void
conf_key(char dst[LS_CONF_NAME_MAX_BYTES], const char *name, bool upper)
{
	size_t i;

	for (i = 0; name[i] != '\0' && i < LS_CONF_NAME_MAX_BYTES - 1; i++)
		dst[i] = name[i] == '-' ? '_'
			: upper		? (char)toupper(name[i])
					: name[i];
	dst[i] = '\0';
}

static const char *
conf_name(const struct ls_conf_program *p, size_t i)
{
	return i < p->option_count ? p->options[i].name
				   : conf_builtins[i - p->option_count];
}

/* The nearest of the first `count` options to `name`, both written with dashes. */
static const char *
conf_nearest_option(const struct ls_conf_program *p, const char *name, size_t count)
{
	const char *words[LS_CONF_OPTIONS_MAX + CONF_BUILTINS];

	for (size_t i = 0; i < count; i++)
		words[i] = conf_name(p, i);
	return ls_conf_nearest(name, words, count);
}

/* Index of the option of that name among the first `count`, or count. */
static size_t
conf_find(const struct ls_conf_program *p, const char *name, size_t len, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strlen(conf_name(p, i)) == len &&
			memcmp(conf_name(p, i), name, len) == 0)
			break;
	return i;
}

/* Sets the option from text; `where` opens the message of a failure. */
static int
conf_set(struct conf_ctx *c, const struct ls_conf_option *o, const char *where,
	const char *text)
{
	char why[LS_CONF_VALUE_MAX_BYTES];
	int rc = ls_conf_value_set(o, text, c->into, why, sizeof(why));

	return rc == 0 ? 0 : conf_fail(c, rc, "%s: %s", where, why);
}

/* --- file ----------------------------------------------------------------- */

/* One run of inih over a text. inih does not tell its handler the line, so the reader
 * counts. */
struct conf_ini {
	struct conf_ctx *c;
	const char *name; /* of the file */
	const char *text;
	size_t len, pos;
	int line;
	bool given[LS_CONF_OPTIONS_MAX];
	int rc; /* of the first failure, whose message is kept */
};

static void
conf_ini_fail(struct conf_ini *ini, int line, int rc, const char *what)
{
	if (ini->rc == 0)
		ini->rc = conf_fail(ini->c, rc, "%s:%d: %s", ini->name, line, what);
}

/*
 * Hands inih the next line. Leading blanks are taken away: inih would read an indented
 * key as more of the value above. A line that does not fit would come out as two, so it
 * ends the reading.
 */
static char *
conf_ini_read(char *dst, int size, void *arg)
{
	struct conf_ini *ini = arg;
	const char *line = ini->text + ini->pos;
	const char *end;
	size_t len;

	if (ini->rc != 0 || ini->pos == ini->len)
		return NULL;
	ini->line++;
	end = memchr(line, '\n', ini->len - ini->pos);
	len = end ? (size_t)(end - line) : ini->len - ini->pos;
	ini->pos += len + (end != NULL);
	for (; len > 0 && (*line == ' ' || *line == '\t'); line++)
		len--;
	/* inih takes its buffer for too small when the line fills it. */
	if (len + 3 > (size_t)size) {
		conf_ini_fail(ini, ini->line, -LS_ERANGE, "line is too long");
		return NULL;
	}
	if (memchr(line, '\0', len)) {
		conf_ini_fail(ini, ini->line, -LS_EPARSE, "line holds a zero byte");
		return NULL;
	}
	memcpy(dst, line, len);
	dst[len] = '\n';
	dst[len + 1] = '\0';
	return dst;
}

/* True if keys of the section are ours; -LS_EUNKNOWN has been noted if it is nobody's.
 */
static bool
conf_ini_is_ours(struct conf_ini *ini, const char *section)
{
	const char *words[CONF_SECTION_COUNT + 1] = { ini->c->p->section };
	char what[LS_CONF_VALUE_MAX_BYTES];
	const char *near;

	if (*section == '\0' || strcmp(section, ini->c->p->section) == 0)
		return true;
	for (size_t i = 0; i < CONF_SECTION_COUNT; i++) {
		if (strcmp(section, conf_sections[i]) == 0)
			return false;
		words[i + 1] = conf_sections[i];
	}
	near = ls_conf_nearest(section, words, CONF_SECTION_COUNT + 1);
	(void)snprintf(what, sizeof(what), "unknown section [%s]%s%s%s", section,
		near ? "; did you mean [" : "", near ? near : "", near ? "]?" : "");
	conf_ini_fail(ini, ini->line, -LS_EUNKNOWN, what);
	return false;
}

static void
conf_ini_unknown(struct conf_ini *ini, const char *name, const char *dashed)
{
	const char *near =
		conf_nearest_option(ini->c->p, dashed, ini->c->p->option_count);
	char key[LS_CONF_NAME_MAX_BYTES];
	char what[LS_CONF_VALUE_MAX_BYTES];

	conf_key(key, near ? near : "", false);
	(void)snprintf(what, sizeof(what), "unknown key '%s'%s%s%s", name,
		near ? "; did you mean '" : "", key, near ? "'?" : "");
	conf_ini_fail(ini, ini->line, -LS_EUNKNOWN, what);
}

static int
conf_ini_key(void *arg, const char *section, const char *name, const char *value)
{
	struct conf_ini *ini = arg;
	const struct ls_conf_program *p = ini->c->p;
	char dashed[LS_CONF_VALUE_MAX_BYTES];
	char where[2 * LS_CONF_VALUE_MAX_BYTES];
	size_t i, k;

	if (ini->rc != 0 || !conf_ini_is_ours(ini, section))
		return 1;
	for (k = 0; name[k] != '\0' && k < sizeof(dashed) - 1; k++)
		dashed[k] = name[k] == '_' ? '-' : name[k];
	dashed[k] = '\0';
	i = conf_find(p, dashed, k, p->option_count);
	if (i == p->option_count || strchr(name, '-')) {
		conf_ini_unknown(ini, name, dashed);
		return 1;
	}
	if (ini->given[i]) {
		(void)snprintf(where, sizeof(where), "'%s' is repeated", name);
		conf_ini_fail(ini, ini->line, -LS_EPARSE, where);
		return 1;
	}
	ini->given[i] = true;
	(void)snprintf(where, sizeof(where), "%.*s:%d: %s", LS_CONF_VALUE_MAX_BYTES,
		ini->name, ini->line, name);
	ini->rc = conf_set(ini->c, &p->options[i], where, value);
	return 1;
}

static int
conf_apply_text(struct conf_ctx *c, const char *name, const char *text, size_t len)
{
	struct conf_ini ini = { .c = c, .name = name, .text = text, .len = len };
	int line;

	if (len > LS_CONF_FILE_MAX_BYTES)
		return conf_fail(c, -LS_ERANGE, "%s: longer than %d bytes", name,
			LS_CONF_FILE_MAX_BYTES);
	/* Its answer is the line of the first one that is neither key, section nor
	 * comment. */
	line = ini_parse_stream(conf_ini_read, &ini, conf_ini_key, &ini);
	if (line < 0)
		return conf_fail(c, -ENOMEM, "%s: %s", name, ls_err_text(-ENOMEM));
	if (line > 0 && (ini.rc == 0 || line < ini.line)) {
		ini.rc = 0;
		conf_ini_fail(&ini, line, -LS_EPARSE, "not 'key = value'");
	}
	return ini.rc;
}

int
ls_conf_parse_file(const struct ls_conf_program *p, const char *name, const char *text,
	size_t len, void *into, char *err_text, size_t err_size)
{
	struct conf_ctx c = { p, into, err_text, err_size };

	LS_ASSERT(p->option_count <= LS_CONF_OPTIONS_MAX);
	return conf_apply_text(&c, name, text, len);
}

static int
conf_apply_file(struct conf_ctx *c, const char *path, bool must_exist)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t len;
	int rc;

	if (!f) {
		rc = -errno;
		if (rc == -ENOENT && !must_exist)
			return 0;
		return conf_fail(c, rc, "%s: %s", path, ls_err_text(rc));
	}
	text = malloc(LS_CONF_FILE_MAX_BYTES + 1);
	if (!text) {
		rc = conf_fail(c, -ENOMEM, "%s: %s", path, ls_err_text(-ENOMEM));
		goto out;
	}
	errno = 0;
	len = fread(text, 1, LS_CONF_FILE_MAX_BYTES + 1, f);
	if (ferror(f)) {
		rc = errno != 0 ? -errno : -EIO;
		(void)conf_fail(c, rc, "%s: %s", path, ls_err_text(rc));
		goto out;
	}
	rc = conf_apply_text(c, path, text, len);
out:
	free(text);
	(void)fclose(f); /* only read from */
	return rc;
}

/* --- defaults, environment, command line ---------------------------------- */

static void
conf_apply_defaults(struct conf_ctx *c)
{
	for (size_t i = 0; i < c->p->option_count; i++) {
		const struct ls_conf_option *o = &c->p->options[i];

		LS_ASSERT(strlen(o->name) < LS_CONF_NAME_MAX_BYTES);
		LS_ASSERT(conf_set(c, o, "default", o->dflt ? o->dflt : "") == 0);
	}
}

static int
conf_apply_environment(struct conf_ctx *c)
{
	char key[LS_CONF_NAME_MAX_BYTES], variable[80], where[96];
	int rc = 0;

	for (size_t i = 0; i < c->p->option_count && rc == 0; i++) {
		const char *value;

		conf_key(key, c->p->options[i].name, true);
		(void)snprintf(variable, sizeof(variable), "LOCKSTEP_%s", key);
		(void)snprintf(where, sizeof(where), "environment %s", variable);
		value = getenv(variable);
		if (value && *value != '\0')
			rc = conf_set(c, &c->p->options[i], where, value);
	}
	return rc;
}

static int
conf_apply_args(struct conf_ctx *c, const struct conf_args *args)
{
	char where[96];
	int rc = 0;

	for (size_t i = 0; i < c->p->option_count && rc == 0; i++) {
		(void)snprintf(where, sizeof(where), "command line: --%s",
			c->p->options[i].name);
		if (args->value[i] && (c->p->options[i].flags & LS_CONF_ELSEWHERE) != 0)
			rc = conf_fail(c, -LS_EUNKNOWN, "%s is not an option of %s",
				where, c->p->usage);
		else if (args->value[i])
			rc = conf_set(c, &c->p->options[i], where, args->value[i]);
	}
	return rc;
}

/* One word of the command line that is an option, split at '='. */
struct conf_word {
	const char *name;
	size_t name_len;
	const char *value; /* after '=', or NULL */
};

static int
conf_args_unknown(struct conf_ctx *c, const struct conf_word *w)
{
	char name[LS_CONF_NAME_MAX_BYTES];
	const char *near = NULL;
	int len = w->name_len < sizeof(name) ? (int)w->name_len : (int)sizeof(name) - 1;

	(void)snprintf(name, sizeof(name), "%.*s", len, w->name);
	if (w->name_len < sizeof(name))
		near = conf_nearest_option(c->p, name,
			c->p->option_count + CONF_BUILTINS);
	return conf_fail(c, -LS_EUNKNOWN, "command line: unknown option --%s%s%s%s",
		name, near ? "; did you mean --" : "", near ? near : "",
		near ? "?" : "");
}

/* Takes the option `w`; its value may be the word `next`, which *ret_used then counts.
 */
static int
conf_args_option(struct conf_ctx *c, const struct conf_word *w, const char *next,
	struct conf_args *a, bool *ret_used)
{
	const struct ls_conf_program *p = c->p;
	size_t n = p->option_count, all = n + CONF_BUILTINS, no = all;
	size_t i = conf_find(p, w->name, w->name_len, all);
	const char *value = w->value ? w->value : next;

	*ret_used = false;
	if (i == all && w->name_len > 3 && memcmp(w->name, "no-", 3) == 0)
		no = conf_find(p, w->name + 3, w->name_len - 3, n);
	if (no < n && p->options[no].type == LS_CONF_BOOL && !w->value) {
		a->value[no] = "false";
		return 0;
	}
	if (i == all || (i >= n && i != n + CONF_CONFIG && w->value))
		return conf_args_unknown(c, w);
	if (i < n ? p->options[i].type == LS_CONF_BOOL : i != n + CONF_CONFIG) {
		a->value[i] = w->value ? w->value : "true";
		return 0;
	}
	if (!value)
		return conf_fail(c, -LS_EPARSE, "command line: --%.*s needs a value",
			(int)w->name_len, w->name);
	*ret_used = !w->value;
	a->value[i] = value;
	return 0;
}

/* Splits "--name=value", "-h", "-V", "-o"; false for other short options. */
static bool
conf_args_split(const struct ls_conf_program *p, const char *arg,
	struct conf_word *ret_word)
{
	struct conf_word w = { 0 };

	if (arg[1] == '-') {
		const char *equals = strchr(arg, '=');

		w.name = arg + 2;
		w.name_len = equals ? (size_t)(equals - w.name) : strlen(w.name);
		w.value = equals ? equals + 1 : NULL;
	} else if (arg[1] == 'o' &&
		conf_find(p, "output", 6, p->option_count) < p->option_count) {
		w.name = "output";
		w.name_len = 6;
		w.value = arg[2] != '\0' ? arg + 2 : NULL;
	} else if (strcmp(arg, "-h") == 0 || strcmp(arg, "-V") == 0) {
		w.name = arg[1] == 'h' ? "help" : "version";
		w.name_len = strlen(w.name);
	} else {
		return false;
	}
	*ret_word = w;
	return true;
}

/* Reads argv into *a; what is no option moves to the front of argv. Ends early at
 * --help. */
static int
conf_args_read(struct conf_ctx *c, int argc, char **argv, struct conf_args *a,
	int *ret_argc)
{
	const char *const *builtin = a->value + c->p->option_count;
	int kept = argc > 0 ? 1 : 0;
	bool options = true;
	int rc;

	for (int i = 1; i < argc; i++) {
		struct conf_word w;
		bool used;

		if (options && strcmp(argv[i], "--") == 0) {
			options = false;
			continue;
		}
		if (!options || argv[i][0] != '-' || argv[i][1] == '\0') {
			if (!c->p->allow_arguments)
				return conf_fail(c, -LS_EUNKNOWN,
					"command line: unexpected argument '%s'",
					argv[i]);
			argv[kept++] = argv[i];
			continue;
		}
		if (!conf_args_split(c->p, argv[i], &w))
			return conf_fail(c, -LS_EUNKNOWN,
				"command line: unknown option %s", argv[i]);
		rc = conf_args_option(c, &w, i + 1 < argc ? argv[i + 1] : NULL, a,
			&used);
		if (rc != 0)
			return rc;
		if (builtin[CONF_HELP] || builtin[CONF_VERSION])
			break;
		i += used;
	}
	*ret_argc = kept;
	return 0;
}

/* --- what the built-in options print -------------------------------------- */

static void
conf_help_line(const struct ls_conf_option *o, FILE *out)
{
	const char *metavar = o->unit ? o->unit : "VALUE";

	if ((o->flags & LS_CONF_ELSEWHERE) != 0)
		return;
	if (o->type == LS_CONF_BOOL)
		(void)fprintf(out, "  --[no-]%s\n", o->name);
	else
		(void)fprintf(out, "  --%s %s\n", o->name, metavar);
	(void)fprintf(out, "        %s", o->help);
	if (o->dflt && *o->dflt != '\0')
		(void)fprintf(out, " (default %s)", o->dflt);
	(void)fputs((o->flags & LS_CONF_RELOAD) != 0 ? " (SIGHUP reloads it)\n" : "\n",
		out);
}

void
ls_conf_help(const struct ls_conf_program *p, FILE *out)
{
	(void)fprintf(out, "Usage: %s\n%s\n\nOptions:\n", p->usage, p->summary);
	for (size_t i = 0; i < p->option_count; i++)
		conf_help_line(&p->options[i], out);
	(void)fprintf(out,
		"  --config FILE\n"
		"        read this configuration file%s%s%s\n"
		"  --check-config\n"
		"        check the configuration and exit: 0 if it is good, 2 if not\n"
		"  --print-config\n"
		"        print the configuration in force and exit\n"
		"  -h, --help\n"
		"        print this help and exit\n"
		"  -V, --version\n"
		"        print the version and exit\n"
		"\n"
		"Each option is also a key of section [%s] in the configuration file (with _ for\n"
		"-) and an environment variable (LOCKSTEP_ and the name in capitals). The command\n"
		"line overrides the environment, which overrides the file. Durations take ns, us, ms, s,\n"
		"m, h, d; sizes take B, KiB, MiB, GiB.\n",
		p->default_file ? " (default " : "",
		p->default_file ? p->default_file : "",
		p->default_file ? ", if there is one)" : "", p->section);
}

static void
conf_print_version(const struct ls_conf_program *p)
{
	(void)printf("%s %s\n", p->name, PACKAGE_VERSION);
	if (p->libraries)
		(void)printf("built with %s\n", p->libraries);
}

/* As a configuration file, secrets as comments. */
static void
conf_print(const struct ls_conf_program *p, const void *from)
{
	char key[LS_CONF_NAME_MAX_BYTES], value[LS_CONF_VALUE_MAX_BYTES];

	(void)printf("[%s]\n", p->section);
	for (size_t i = 0; i < p->option_count; i++) {
		const struct ls_conf_option *o = &p->options[i];

		conf_key(key, o->name, false);
		ls_conf_value_get(o, from, value, sizeof(value));
		if ((o->flags & LS_CONF_SECRET) != 0)
			(void)printf("# %s is %s\n", key,
				*value ? "set (hidden)" : "not set");
		else
			(void)printf("%s = %s\n", key, value);
	}
}

int
ls_conf_load(const struct ls_conf_program *p, int argc, char **argv, void *into,
	enum ls_conf_action *ret_action, int *ret_argc, char *err_text, size_t err_size)
{
	struct conf_ctx c = { p, into, err_text, err_size };
	struct conf_args args = { 0 };
	const char *const *builtin = args.value + p->option_count;
	int rc, kept = 0;

	LS_ASSERT(p->option_count <= LS_CONF_OPTIONS_MAX);
	conf_apply_defaults(&c);
	rc = conf_args_read(&c, argc, argv, &args, &kept);
	if (rc != 0)
		return rc;
	if (p->narrow)
		c.p = p = p->narrow(p->narrow_arg, kept > 1 ? argv[1] : "");
	if (builtin[CONF_HELP] || builtin[CONF_VERSION]) {
		if (builtin[CONF_HELP])
			ls_conf_help(p, stdout);
		else
			conf_print_version(p);
		*ret_action = LS_CONF_EXIT;
		*ret_argc = kept;
		return 0;
	}
	if (builtin[CONF_CONFIG])
		rc = conf_apply_file(&c, builtin[CONF_CONFIG], true);
	else if (p->default_file)
		rc = conf_apply_file(&c, p->default_file, false);
	if (rc == 0)
		rc = conf_apply_environment(&c);
	if (rc == 0)
		rc = conf_apply_args(&c, &args);
	if (rc != 0)
		return rc;
	if (builtin[CONF_PRINT])
		conf_print(p, into);
	*ret_action = builtin[CONF_CHECK] ? LS_CONF_CHECK
		: builtin[CONF_PRINT]	  ? LS_CONF_EXIT
					  : LS_CONF_RUN;
	*ret_argc = kept;
	return 0;
}
