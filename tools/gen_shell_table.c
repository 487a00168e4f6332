/* SPDX-License-Identifier: Apache-2.0 */
/* gen_shell_table.c - reads src/shell/table/NAME.rows at build time and prints them as the arrays that
 * src/shell/table_builtin.c includes. */
#include "base/cleanup.h"
#include "shell/table_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static void put_strings(const struct sh_table *t)
{
	/* As numbers: a string literal of this length is not portable. */
	printf("static const char strings[] = {");
	for (size_t i = 0; i < t->n_strings; i++)
		printf("%s%d,", i % 24 ? "" : "\n\t", t->strings[i]);
	printf("\n};\n");
}

static void put_names(const struct sh_table *t)
{
	printf("static const struct sh_name names[] = {\n");
	for (size_t i = 0; i < t->n_names; i++)
		printf("\t{ %u, %u }, /* %s */\n", t->names[i].name, t->names[i].row, t->strings + t->names[i].name);
	printf("};\nstatic const struct sh_row rows[] = {\n");
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct sh_row *r = &t->rows[i];

		printf("\t{ %u, %u, 0x%x, 0x%x, %u, %u, %u, %u },\n", r->name, r->why, r->flags, r->does, r->opt, r->pattern, r->n_opts,
		       r->n_patterns);
	}
	printf("};\n");
}

static void put_parts(const struct sh_table *t)
{
	printf("static const struct sh_opt opts[] = {\n");
	for (size_t i = 0; i < t->n_opts; i++) {
		const struct sh_opt *o = &t->opts[i];

		printf("\t{ %u, 0x%x, 0x%x, %u, %u, %u, %u, %u, { 0 } },\n", o->name, o->does, o->modes, o->slot, o->n_slots, o->arg, o->last,
		       o->prefix);
	}
	printf("};\nstatic const struct sh_pattern patterns[] = {\n");
	for (size_t i = 0; i < t->n_patterns; i++) {
		const struct sh_pattern *p = &t->patterns[i];

		printf("\t{ 0x%x, 0x%x, %d, %u, %u, { 0 } },\n", p->modes, p->does, p->count, p->slot, p->n_slots);
	}
	printf("};\nstatic const struct sh_slot slots[] = {\n");
	for (size_t i = 0; i < t->n_slots; i++) {
		const struct sh_slot *s = &t->slots[i];

		printf("\t{ %u, %u, %u, %u, %u, { 0 }, %u },\n", s->role, s->role2, s->form, s->repeat, s->dash, s->lang);
	}
	printf("};\n");
}

static int read_one(struct sh_rows *b, const char *path, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(SH_ROWS_TEXT_MAX);
	CS_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? cs_fail(err, CS_E_SYSTEM, errno, "open '%s'", path) : cs_buf_read_fd(&text, fd, path, err);

	return r < 0 ? r : sh_rows_add(b, cs_buf_text(&text), text.len, path, err);
}

int main(int argc, char **argv)
{
	struct cs_err err = { 0 };
	struct sh_table t;
	struct sh_rows b;

	sh_rows_init(&b);
	for (int i = 1; i < argc; i++)
		if (read_one(&b, argv[i], &err) < 0)
			return fprintf(stderr, "%s\n", err.msg), 1;
	sh_rows_table(&b, &t);
	printf("/* Made by tools/gen_shell_table.c from src/shell/table. */\n");
	put_strings(&t);
	put_names(&t);
	put_parts(&t);
	printf("static const struct sh_table builtin = {\n\t.trusted = true, .strings = strings, .names = names, .rows = rows, .opts = opts,"
	       " .patterns = patterns, .slots = slots,\n\t.n_names = %zu, .n_rows = %zu, .n_opts = %zu, .n_patterns = %zu, .n_slots = %zu,"
	       " .n_strings = %zu,\n};\n",
	       t.n_names, t.n_rows, t.n_opts, t.n_patterns, t.n_slots, t.n_strings);
	sh_rows_done(&b);
	return 0;
}
