/* SPDX-License-Identifier: Apache-2.0 */
/* parse_tool.c - for test_bash.py: scripts in on standard input, each ended by a NUL; answers out, each ended by a NUL.
 *
 * An answer is a letter and a text: 'o' and the script printed, 'i' (invalid), 'u' (unsupported) or 'l' (limit) and the
 * message, 'r' when printing and reading again gives another script.  With -w: for scripts that are one simple command
 * whose words are all literal once braces are expanded, 'w' and those words, each ended by \1; else 'n'.  With -s scripts
 * come in pairs: 's' same, 'd' different, 'e' one of them is not read. */
#include "shell/syntax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct texts {
	char **v;
	size_t n;
};

static void add(struct texts *t, const char *a, const char *b)
{
	size_t len = strlen(a) + strlen(b) + 1;

	t->v = realloc(t->v, (t->n + 1) * sizeof *t->v);
	t->v[t->n] = malloc(len);
	snprintf(t->v[t->n++], len, "%s%s", a, b);
}

static int expand_parts(const struct sh_part *p, struct texts *t);

static int sequence(const struct sh_word *w, struct texts *t)
{
	const char *a = w->parts->text, *b = w->next->parts->text;
	long step = w->next->next ? strtol(w->next->next->parts->text, NULL, 10) : 1, from, to;
	int width = 0;
	bool letters = (*a < '0' || *a > '9') && *a != '-' && *a != '+';

	from = letters ? *a : strtol(a, NULL, 10);
	to = letters ? *b : strtol(b, NULL, 10);
	if (step == 0)
		step = 1;
	if (step < 0)
		step = -step;
	if ((to > from ? to - from : from - to) / step > 1000)
		return -1;
	if (!letters && ((a[*a == '-'] == '0' && a[1 + (*a == '-')]) || (b[*b == '-'] == '0' && b[1 + (*b == '-')])))
		width = (int)(strlen(a) > strlen(b) ? strlen(a) : strlen(b));
	for (long i = from; from <= to ? i <= to : i >= to; i += from <= to ? step : -step) {
		char text[32];

		if (letters)
			snprintf(text, sizeof text, "%c", (char)i);
		else
			snprintf(text, sizeof text, "%0*ld", width, i);
		add(t, text, "");
	}
	return 0;
}

static int choices(const struct sh_part *p, struct texts *ret)
{
	if (p->kind == SH_LIT || p->kind == SH_QUOTED || p->kind == SH_GLOB) {
		add(ret, p->text, "");
		return 0;
	}
	if (p->kind != SH_BRACE)
		return -1;
	if (p->sequence)
		return sequence(p->words, ret);
	for (const struct sh_word *w = p->words; w; w = w->next)
		if (expand_parts(w->parts, ret) < 0)
			return -1;
	return 0;
}

static int expand_parts(const struct sh_part *p, struct texts *t)
{
	struct texts now = { 0 };

	add(&now, "", "");
	for (; p; p = p->next) {
		struct texts next = { 0 }, with = { 0 };

		if (choices(p, &with) < 0)
			return -1;
		for (size_t i = 0; i < now.n; i++)
			for (size_t j = 0; j < with.n && next.n < 4096; j++)
				add(&next, now.v[i], with.v[j]);
		now = next;
	}
	for (size_t i = 0; i < now.n; i++)
		add(t, now.v[i], "");
	return 0;
}

/* Whether a word is there at all: an alternative without a character is none. */
static bool has_quotes(const struct sh_part *p)
{
	for (; p; p = p->next)
		if (p->kind == SH_QUOTED)
			return true;
	return false;
}

static void words(const struct sh_script *s)
{
	struct texts t = { 0 };

	if (!s->first || s->first->kind != SH_SIMPLE || s->first->redirects || s->first->assigns) {
		putchar('n');
		return;
	}
	for (const struct sh_word *w = s->first->words; w; w = w->next) {
		size_t before = t.n;

		if (expand_parts(w->parts, &t) < 0) {
			putchar('n');
			return;
		}
		for (size_t i = before; i < t.n && !has_quotes(w->parts); i++)
			if (!*t.v[i]) {
				memmove(t.v + i, t.v + i + 1, (t.n - i - 1) * sizeof *t.v);
				t.n--;
				i--;
			}
	}
	putchar('w');
	for (size_t i = 0; i < t.n; i++)
		printf("%s\1", t.v[i]);
}

static void answer(const char *text, size_t len, bool want_words)
{
	struct cs_buf out = CS_BUF(64 << 20);
	struct sh_script *s, *again;
	struct cs_err err = { 0 };
	int r = sh_parse(text, len, &s, NULL, &err);

	if (r < 0) {
		printf("%c%s", r == -CS_E_INVALID ? 'i' : r == -CS_E_UNSUPPORTED ? 'u' : 'l', err.msg);
		return;
	}
	if (want_words) {
		words(s);
		sh_free(s);
		return;
	}
	sh_print(s, &out);
	if (sh_parse(cs_buf_text(&out), out.len, &again, NULL, &err) < 0) {
		printf("r%s\n%s", err.msg, cs_buf_text(&out));
	} else {
		printf("%c%s", sh_same(s, again) ? 'o' : 'r', cs_buf_text(&out));
		sh_free(again);
	}
	sh_free(s);
	cs_buf_done(&out);
}

static char compare(const char *a, const char *b)
{
	struct sh_script *x = NULL, *y = NULL;
	char c = 'e';

	if (sh_parse(a, strlen(a), &x, NULL, NULL) == 0 && sh_parse(b, strlen(b), &y, NULL, NULL) == 0)
		c = sh_same(x, y) ? 's' : 'd';
	sh_free(x);
	sh_free(y);
	return c;
}

static int pairs(void)
{
	char *a = NULL, *b = NULL;
	size_t a_room = 0, b_room = 0;

	while (getdelim(&a, &a_room, '\0', stdin) > 0 && getdelim(&b, &b_room, '\0', stdin) > 0) {
		putchar(compare(a, b));
		putchar('\0');
	}
	free(a);
	free(b);
	return 0;
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	if (argc > 1 && !strcmp(argv[1], "-s"))
		return pairs();
	while ((len = getdelim(&line, &room, '\0', stdin)) > 0) {
		answer(line, (size_t)len - (line[len - 1] == '\0'), argc > 1 && !strcmp(argv[1], "-w"));
		putchar('\0');
	}
	free(line);
	return 0;
}
