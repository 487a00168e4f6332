/* SPDX-License-Identifier: Apache-2.0 */
/* shadow.c - tools screened: their texts (screen.c), and their names against one another. */
#include "gate/manifest.h"
#include "gate/screen.h"

#include "base/text.h"

#include <string.h>

enum { DEPTH = 64 };

/* ---- texts ---- */

static bool is_filled_in(const char *key)
{
	return !strcmp(key, "default") || !strcmp(key, "const") || !strcmp(key, "examples") || !strcmp(key, "example");
}

/* Texts are judged one by one, and the worst counts: little things of many texts prove nothing together. */
static void judge(struct screen *worst, const char *text, size_t len, bool filled_in)
{
	struct screen s = { 0 };

	if (filled_in)
		screen_default(&s, text, len);
	else
		screen_text(&s, text, len);
	if (!worst->hidden && (s.hidden || s.score > worst->score))
		*worst = s;
}

/* Every string of a schema is read by the model, keys included. */
static void judge_value(struct screen *worst, const struct json *v, bool filled_in, unsigned depth)
{
	if (depth > DEPTH)
		return;
	if (json_is(v, JSON_STRING))
		judge(worst, v->s, v->n, filled_in);
	for (size_t i = 0; json_is(v, JSON_ARRAY) && i < v->n; i++)
		judge_value(worst, &v->items[i], filled_in, depth + 1);
	for (size_t i = 0; json_is(v, JSON_OBJECT) && i < v->n; i++) {
		const struct json_member *m = &v->members[i];

		judge(worst, m->key, m->key_len, false);
		judge_value(worst, &m->value, filled_in || is_filled_in(m->key), depth + 1);
	}
}

/* Other characters look like these; a client may also cut or change them. */
static const char *not_plain(const char *name)
{
	return name + strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:");
}

static void screen_tool(struct manifest_tool *t)
{
	struct screen s = { 0 };

	if (*not_plain(t->name))
		manifest_quarantine(t, true, "its name has U+%04X: only letters, digits and _-./: are taken", screen_character(not_plain(t->name)));
	judge_value(&s, t->whole, false, 0);
	if (s.hidden)
		manifest_quarantine(t, true, "%s", s.why);
	else if (s.score >= SCREEN_SUSPICIOUS)
		manifest_quarantine(t, false, "suspicious text: %s", s.why);
}

/* ---- names ---- */

/* One word of each name, where the rest is the same: read_file and read_files differ in "file" and "files". */
static bool differing_words(const char *a, const char *b, char x[32], char y[32])
{
	size_t n = strlen(a), m = strlen(b), first = 0, last = 0;

	while (a[first] && a[first] == b[first])
		first++;
	while (last < n - first && last < m - first && a[n - 1 - last] == b[m - 1 - last])
		last++;
	while (first && a[first - 1] != '_' && a[first - 1] != '-')
		first--;
	while (last && a[n - last] != '_' && a[n - last] != '-')
		last--;
	if (n - last - first >= 32 || m - last - first >= 32)
		return false;
	memcpy(x, a + first, n - last - first);
	memcpy(y, b + first, m - last - first);
	x[n - last - first] = y[m - last - first] = 0;
	return true;
}

static bool is_short_verb(const char *w)
{
	static const char *const verbs[] = { "get", "set", "put", "let", "add", "del", "run", "new", "old", "on", "off", "in", "out", "up", "to",
					     "from", "by", "all", "any", "end", "min", "max", "sum", "start", "stop", "list", "last", "open",
					     "close", "push", "pull",
					     "read", "send", "load", "save", "move", "copy", "post", "host", "day", "week", "hour", "text",
					     "test", "next", "prev", "left", "right", "x", "y", "z", "a", "b", "id", "ids" };

	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (!strcmp(w, verbs[i]))
			return true;
	return false;
}

static bool is_number(const char *w)
{
	return *w && w[strspn(w, "v0123456789")] == 0;
}

static bool is_undoing(const char *w, const char *of)
{
	return (!strncmp(w, "un", 2) || !strncmp(w, "de", 2) || !strncmp(w, "re", 2)) && !strcmp(w + 2, of);
}

/* Names that differ little for a reason: get_user and set_user, star and unstar, part_1 and part_2; of one server
 * also item and items. */
static bool differ_for_a_reason(const char *a, const char *b, bool one_server)
{
	char x[32], y[32];
	size_t n, m;

	if (!differing_words(a, b, x, y))
		return false;
	n = strlen(x);
	m = strlen(y);
	if (is_undoing(x, y) || is_undoing(y, x))
		return true;
	if ((is_short_verb(x) && is_short_verb(y)) || (is_number(x) && is_number(y)))
		return true;
	return one_server && (n < m ? m - n == 1 && y[n] == 's' && !memcmp(x, y, n) : n - m == 1 && x[m] == 's' && !memcmp(x, y, m));
}

static bool is_near_miss(const char *a, const char *b, bool one_server)
{
	size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

	if (screen_alike(a, b))
		return true;
	return screen_near(a, b, n < 4 ? 0 : n < 8 ? 1 : 2) && !differ_for_a_reason(a, b, one_server);
}

static void compare(struct manifest_tool *a, struct manifest_tool *b, bool one_server, const char *where_a, const char *where_b)
{
	char shown[64], where[64];

	if (!strcmp(a->name, b->name)) {
		manifest_quarantine(a, true, "shadowing: %s has a tool of this name, too", cs_escape_to(where, sizeof where, where_b));
		manifest_quarantine(b, true, "shadowing: %s has a tool of this name, too", cs_escape_to(where, sizeof where, where_a));
	} else if (is_near_miss(a->name, b->name, one_server)) {
		manifest_quarantine(a, !one_server, "near miss: its name is nearly that of '%s' (%s)", cs_escape_to(shown, sizeof shown, b->name),
				    cs_escape_to(where, sizeof where, where_b));
		manifest_quarantine(b, !one_server, "near miss: its name is nearly that of '%s' (%s)", cs_escape_to(shown, sizeof shown, a->name),
				    cs_escape_to(where, sizeof where, where_a));
	}
}

static size_t in_quarantine(const struct manifest *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += m->tools[i].quarantine[0] != 0;
	return n;
}

static bool is_one_server(const struct manifest_tool *a, const struct manifest_tool *b)
{
	return !a->server == !b->server && (!a->server || !strcmp(a->server, b->server));
}

size_t manifest_screen(struct manifest *m)
{
	for (size_t i = 0; i < m->n; i++)
		screen_tool(&m->tools[i]);
	for (size_t i = 0; i < m->n; i++)
		for (size_t k = i + 1; k < m->n; k++)
			compare(&m->tools[i], &m->tools[k], is_one_server(&m->tools[i], &m->tools[k]), m->origin, m->origin);
	return in_quarantine(m);
}

/* ---- between servers ---- */

static bool word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool names_it(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = text; (at = strstr(at, name)); at += n)
		if ((at == text || !word_char(at[-1])) && !word_char(at[n]))
			return true;
	return false;
}

/* A plain word, such as `search`, says nothing; send_email is meant. */
static bool is_telling(const char *name)
{
	return strlen(name) >= 5 && strpbrk(name, "_-./:");
}

static void meet(struct manifest *x, struct manifest *y)
{
	for (size_t i = 0; i < x->n; i++)
		for (size_t k = 0; k < y->n; k++) {
			struct manifest_tool *a = &x->tools[i], *b = &y->tools[k];
			char shown[64], where[64];

			compare(a, b, false, x->origin, y->origin);
			if (a->description && is_telling(b->name) && names_it(a->description, b->name) && !manifest_find(x, b->name))
				manifest_quarantine(a, false, "its description speaks of '%s', a tool of %s", cs_escape_to(shown, sizeof shown, b->name),
						    cs_escape_to(where, sizeof where, y->origin));
			if (b->description && is_telling(a->name) && names_it(b->description, a->name) && !manifest_find(y, a->name))
				manifest_quarantine(b, false, "its description speaks of '%s', a tool of %s", cs_escape_to(shown, sizeof shown, a->name),
						    cs_escape_to(where, sizeof where, x->origin));
		}
}

size_t manifest_screen_across(struct manifest *const *all, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			meet(all[i], all[k]);
	for (size_t i = 0; i < n; i++)
		found += in_quarantine(all[i]);
	return found;
}
