/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/screen.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	LONG = 16 << 10,  /* a description of that size is suspicious, */
	LOOK = 64 << 10,  /* and no more of it is looked at */
	WORDS = 8192,
};

static void raise(struct screen *s, unsigned by, const char *why)
{
	if (!s->why[0] || (by >= SCREEN_SUSPICIOUS && s->score < SCREEN_SUSPICIOUS))
		snprintf(s->why, sizeof s->why, "%s", why);
	s->score += by;
}

/* ---- characters ---- */

/* The reader of JSON has checked that it is UTF-8; other callers' bytes that are not are taken one by one. */
static size_t decode(const unsigned char *s, size_t left, uint32_t *cp)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	*cp = s[0];
	if (n == 1 || s[0] < 0xc0 || n > left)
		return 1;
	*cp = s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++)
		*cp = *cp << 6 | (s[i] & 0x3f);
	return n;
}

static bool is_tag(uint32_t c)
{
	return c >= 0xe0000 && c <= 0xe007f;
}

/* Never of use in a text for people. */
static bool is_hidden(uint32_t c)
{
	return (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x34f || c == 0x61c ||
	       c == 0x115f || c == 0x1160 || c == 0x180e || c == 0x200b || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
	       c == 0x3164 || c == 0xfeff || c == 0xffa0 || (c >= 0xfff0 && c <= 0xfffb) || (c >= 0xe000 && c <= 0xf8ff) ||
	       (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef) || c >= 0xe0000;
}

/* Of use in some scripts and in emoji, and never beside ASCII. */
static bool is_joiner(uint32_t c)
{
	return (c >= 0x200c && c <= 0x200f) || (c >= 0xfe00 && c <= 0xfe0e);
}

static bool is_mark(uint32_t c)
{
	return (c >= 0x300 && c <= 0x36f) || (c >= 0x1ab0 && c <= 0x1aff) || (c >= 0x20d0 && c <= 0x20ff);
}

/* Letters of other scripts that pass for Latin ones. */
static uint32_t look_alike(uint32_t c)
{
	static const struct { uint16_t c; char is; } rows[] = {
		{ 0x430, 'a' }, { 0x435, 'e' }, { 0x43e, 'o' }, { 0x440, 'p' }, { 0x441, 'c' }, { 0x443, 'y' }, { 0x445, 'x' },
		{ 0x456, 'i' }, { 0x458, 'j' }, { 0x455, 's' }, { 0x501, 'd' }, { 0x51b, 'q' }, { 0x51d, 'w' }, { 0x4bb, 'h' },
		{ 0x410, 'a' }, { 0x412, 'b' }, { 0x415, 'e' }, { 0x41a, 'k' }, { 0x41c, 'm' }, { 0x41d, 'h' }, { 0x41e, 'o' },
		{ 0x420, 'p' }, { 0x421, 'c' }, { 0x422, 't' }, { 0x425, 'x' }, { 0x406, 'i' }, { 0x405, 's' }, { 0x408, 'j' },
		{ 0x3b1, 'a' }, { 0x3bf, 'o' }, { 0x3c1, 'p' }, { 0x3bd, 'v' }, { 0x3b9, 'i' }, { 0x3ba, 'k' }, { 0x3c5, 'u' },
		{ 0x391, 'a' }, { 0x392, 'b' }, { 0x395, 'e' }, { 0x397, 'h' }, { 0x399, 'i' }, { 0x39a, 'k' }, { 0x39c, 'm' },
		{ 0x39d, 'n' }, { 0x39f, 'o' }, { 0x3a1, 'p' }, { 0x3a4, 't' }, { 0x3a7, 'x' }, { 0x585, 'o' }, { 0x578, 'n' },
		{ 0x131, 'i' }, { 0x261, 'g' }, { 0x1d0f, 'o' }, { 0x1d04, 'c' },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].c == c)
			return (uint32_t)rows[i].is;
	return 0;
}

/* Latin letters with something on them, as the letters; U+00C0 on. */
static uint32_t plain_latin(uint32_t c)
{
	static const char one[] = "aaaaaaaceeeeiiiidnooooo*ouuuuypsaaaaaaaceeeeiiiidnooooo*ouuuuypy";
	static const char two[] = "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllllnnnnnnnnnoooooooorrrrrrsssssssstttttt"
				  "uuuuuuuuuuuuwwyyyzzzzzzs";

	if (c >= 0xc0 && c < 0x100)
		return (uint32_t)one[c - 0xc0];
	if (c >= 0x100 && c < 0x180)
		return c - 0x100 < sizeof two - 1 ? (uint32_t)two[c - 0x100] : 0;
	return 0;
}

/* A small ASCII letter, digit or sign for whatever reads as one; 0: for what does not show. */
static uint32_t fold(uint32_t c)
{
	uint32_t as;

	if (is_tag(c))
		c = (c & 0x7f) < 0x20 ? ' ' : c & 0x7f;
	else if (c >= 0xff01 && c <= 0xff5e)
		c -= 0xfee0;
	else if (c >= 0x1d400 && c <= 0x1d6a3)
		c = 'a' + (c - 0x1d400) % 26;
	else if (c == 0xa0 || (c >= 0x2000 && c <= 0x200a) || c == 0x202f || c == 0x3000)
		c = ' ';
	if (c >= 'A' && c <= 'Z')
		return c + 32;
	if (c < 0x80)
		return c;
	if (is_hidden(c) || is_joiner(c) || is_mark(c))
		return 0;
	if (c == 0x2018 || c == 0x2019)
		return '\'';
	as = look_alike(c);
	if (!as)
		as = plain_latin(c);
	return as ? as : '*'; /* not a word of ours, and no boundary that could be made up either */
}

static bool is_ascii_letter(uint32_t c)
{
	return (c | 32) >= 'a' && (c | 32) <= 'z' && c < 0x80;
}

/* Runs of letters: Latin ones and such as pass for Latin in one word are a disguise. */
struct word_mix {
	unsigned latin, alike, other;
};

static void mix_note(struct screen *s, struct word_mix *w, uint32_t c)
{
	if (is_ascii_letter(c)) {
		w->latin++;
	} else if (look_alike(c)) {
		w->alike++;
	} else if (c >= 0x370 && c < 0x590) {
		w->other++; /* Greek or Cyrillic that could be nothing else */
	} else {
		if (w->latin >= 2 && w->alike && !w->other)
			raise(s, SCREEN_SUSPICIOUS, "letters of another script pass for Latin ones");
		*w = (struct word_mix){ 0 };
	}
}

static void hide_note(struct screen *s, const char *what, uint32_t c)
{
	if (s->hidden)
		return;
	s->hidden = true;
	s->score += SCREEN_SUSPICIOUS;
	snprintf(s->why, sizeof s->why, "hidden characters: %s U+%04X", what, (unsigned)c);
}

static const char *hidden_name(uint32_t c)
{
	return is_tag(c) ? "a tag character" : (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ? "a change of direction" :
	       c < 0xa0 ? "a control character" : c >= 0xe000 && c <= 0xf8ff ? "one that has no meaning of its own," : "an invisible one,";
}

/* Looks at every character, and writes the folded text. */
static void look_at_characters(struct screen *s, const unsigned char *text, size_t len, struct cs_buf *folded)
{
	struct word_mix w = { 0 };
	uint32_t before = 0, c;

	for (size_t i = 0, n; i < len; i += n, before = c) {
		uint32_t after = 0, f;

		n = decode(text + i, len - i, &c);
		if (i + n < len)
			decode(text + i + n, len - i - n, &after);
		if (is_hidden(c))
			hide_note(s, hidden_name(c), c);
		else if (is_joiner(c) && (before < 0x80 || (after && after < 0x80 && is_ascii_letter(after))))
			hide_note(s, "a joiner beside a plain letter,", c);
		f = fold(c);
		mix_note(s, &w, f || is_mark(c) ? c : 'a' /* no boundary */);
		if (f)
			cs_buf_char(folded, (char)f);
	}
	mix_note(s, &w, ' ');
}

/* ---- words ---- */

struct words {
	const char *at[WORDS];
	uint8_t len[WORDS];
	size_t n;
};

static bool in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '\'' || c == '*';
}

static void add_word(struct words *w, const char *at, size_t len)
{
	if (w->n == WORDS)
		return;
	w->at[w->n] = at;
	w->len[w->n++] = len > 255 ? 255 : (uint8_t)len;
}

/* Addresses are one word each, "URL" and "EMAIL"; the end of a sentence is the word ".". */
static size_t take_word(struct words *w, const char *p)
{
	size_t n = strcspn(p, " \t\r\n\"<>()[]{},;"), at = 0;

	while (in_word(p[at]))
		at++;
	if (at && !strncmp(p + at, "://", 3)) {
		add_word(w, "URL", 3);
		return n;
	}
	for (size_t i = at; at && i < n && (in_word(p[i]) || strchr(".+-", p[i]) || p[i] == '@'); i++)
		if (p[i] == '@' && i + 1 < n && in_word(p[i + 1])) {
			add_word(w, "EMAIL", 5);
			return n;
		}
	if (at) {
		add_word(w, p, at);
		return at;
	}
	if (strchr(".!?;\n", *p) && (!p[1] || strchr(" \n\t\"", p[1])))
		add_word(w, ".", 1);
	return 1;
}

static void split(struct words *w, const char *text)
{
	w->n = 0;
	while (*text)
		text += take_word(w, text);
}

static bool is_one_of(const char *word, size_t len, const char *list, const char *end)
{
	while (list < end) {
		const char *bar = memchr(list, '|', (size_t)(end - list));
		size_t n = (size_t)((bar ? bar : end) - list);

		if (n && list[n - 1] == '*' ? len >= n - 1 && !memcmp(word, list, n - 1) : len == n && !memcmp(word, list, n))
			return true;
		list += n + 1;
	}
	return false;
}

/* A pattern is words with their alternatives, "a|b* ~3 c": `*` ends a beginning, `~3` allows up to three
 * words between, within a sentence. */
static bool matches_at(const struct words *w, size_t i, const char *pattern)
{
	size_t gap = 0;
	const char *end;

	if (*pattern == '~') {
		gap = (size_t)(pattern[1] - '0');
		pattern += 3;
	}
	end = pattern + strcspn(pattern, " ");
	for (size_t k = 0; k <= gap && i + k < w->n; k++) {
		const char *word = w->at[i + k];

		if (is_one_of(word, w->len[i + k], pattern, end) && (!*end || matches_at(w, i + k + 1, end + 1)))
			return true;
		if (*word == '.')
			return false;
	}
	return false;
}

static bool says(const struct words *w, const char *pattern)
{
	for (size_t i = 0; i < w->n; i++)
		if (matches_at(w, i, pattern))
			return true;
	return false;
}

#define SECRETS "credential*|secret|secrets|password*|passphrase*|passwd|token|tokens|key|keys|cookies|id_rsa"
#define SENDS "read|send|paste|upload|forward|collect|cat|append|attach|bcc|post|copy|extract|transmit|dump"
#define TELLS "tell*|mention*|inform*|reveal*|disclos*"

static const struct phrase {
	unsigned score;
	const char *pattern, *why;
} phrases[] = {
	{ 2, "ignore|disregard|forget|override|bypass ~3 previous|prior|above|earlier|preceding|all|any|your ~2 instruction*|prompt*|rule*|guideline*|"
	     "direction*|polic*|restriction*", "tells the model to disregard its instructions" },
	{ 2, "ignore|disregard|forget previous|prior|above|earlier|everything", "tells the model to disregard what came before" },
	{ 2, "not|never|don't|without|avoid ~2 " TELLS " ~5 user*|human*|anyone|anybody|them", "tells the model to keep something from the user" },
	{ 1, "not|never|don't|without ~2 notify*|alert*|ask*|show* ~3 user*|human*|anyone", "speaks of what the user is not to notice" },
	{ 2, "secretly|covertly|silently|quietly ~2 " SENDS "|include|add|run|call|execute", "asks for something to be done in secret" },
	{ 2, "exfiltrat*", "speaks of exfiltration" },
	{ 2, "leak|steal|harvest|siphon|smuggle ~5 " SECRETS "|it|them|data|conversation|history", "asks for something to be leaked" },
	{ 2, "must|should|need|always|first|please|before|now ~8 " SENDS " ~8 " SECRETS, "tells the model to handle secrets" },
	{ 2, "paste|send|include|provide|attach|append|upload|forward|share|post|copy|repeat|pass ~3 entire|full|whole|complete|all|previous|current ~2 "
	     "conversation|chat|transcript|history|context|prompt|messages", "asks for the conversation" },
	{ 2, "reveal|print|output|repeat|include|send|show|paste ~4 system prompt|message|instruction*", "asks for the system prompt" },
	{ 1, "you|assistant|model|agent|llm|ai must|should|shall|always|never", "speaks to the model" },
	{ 1, "before|prior ~1 answering|responding|replying|using|calling|invoking|doing", "speaks to the model" },
	{ 2, "must|always|first ~6 call|use|invoke|run ~3 before|prior ~4 other|any|every|each|all ~2 tool*|function*|action*",
	  "puts itself before other tools" },
	{ 2, "instead|rather ~3 of|than ~3 other|any|all|every|original|official ~2 tool*|function*", "puts itself in place of other tools" },
	{ 2, "tool|function ~3 override*|supersede*|replace*|takes ~4 other|all|any|previous|precedence ~3 tool*|function*|over|precedence",
	  "puts itself in place of other tools" },
	{ 1, "do not|never ~2 use|call|invoke ~4 tool*|function*", "speaks of other tools" },
	{ 2, "bcc|cc|forward|redirect|copy|send|route ~2 every|all|each|any|everything ~8 EMAIL|URL", "sends things to an address of its own" },
	{ 1, "bcc|forward|redirect|send|post|upload|transmit ~8 EMAIL|URL", "names an address to send things to" },
	{ 1, "execute|run|eval|evaluate ~3 following|this ~2 command|code|script|shell", "asks for commands to be run" },
};

/* ---- things in texts ---- */

/* In a text that was folded. */
static const struct sign {
	unsigned score;
	const char *text, *why;
} signs[] = {
	{ 2, "<important", "a tag that gives orders" }, { 2, "<system", "a tag that gives orders" },
	{ 2, "<instruction", "a tag that gives orders" }, { 2, "<hidden", "a tag that gives orders" },
	{ 2, "<secret", "a tag that gives orders" }, { 2, "<critical", "a tag that gives orders" },
	{ 2, "<override", "a tag that gives orders" }, { 2, "<admin", "a tag that gives orders" },
	{ 2, "[inst]", "a tag that gives orders" }, { 2, "[system]", "a tag that gives orders" },
	{ 2, "<|im_", "the marks of a model's own format" }, { 2, "<|system", "the marks of a model's own format" },
	{ 2, "<<sys", "the marks of a model's own format" }, { 2, "</assistant", "the marks of a model's own format" },
	{ 2, "### instruction", "the marks of a model's own format" }, { 1, "<!--", "a comment that is not shown" },
	{ 2, "id_rsa", "names files of secrets" }, { 2, "id_ed25519", "names files of secrets" },
	{ 2, ".ssh/", "names files of secrets" }, { 2, ".aws/", "names files of secrets" },
	{ 2, ".netrc", "names files of secrets" }, { 2, "/etc/shadow", "names files of secrets" },
	{ 2, ".git-credentials", "names files of secrets" }, { 2, ".kube/config", "names files of secrets" },
	{ 2, ".gnupg", "names files of secrets" }, { 2, "/proc/self/environ", "names files of secrets" },
	{ 2, "169.254.169.254", "names a cloud's service for credentials" }, { 2, "rm -rf", "holds a command that deletes" },
	{ 2, "base64 -d", "holds a command that hides another" }, { 1, "--no-sandbox", "names options that take protections away" },
	{ 1, "--privileged", "names options that take protections away" }, { 1, "--dangerously", "names options that take protections away" },
};

/* A download into an interpreter. */
static bool pipes_to_shell(const char *text)
{
	static const char *const gets[] = { "curl ", "wget ", "fetch " };
	static const char *const runs[] = { "sh", "bash", "zsh", "python", "perl", "node", "sudo" };

	for (size_t g = 0; g < sizeof gets / sizeof *gets; g++) {
		const char *at = strstr(text, gets[g]);
		const char *bar = at ? strchr(at, '|') : NULL;

		for (size_t r = 0; bar && r < sizeof runs / sizeof *runs; r++)
			if (!strncmp(bar + 1 + strspn(bar + 1, " "), runs[r], strlen(runs[r])))
				return true;
	}
	return false;
}

static void look_for_signs(struct screen *s, const char *folded)
{
	if (pipes_to_shell(folded))
		raise(s, SCREEN_SUSPICIOUS, "holds a command that runs what it downloads");
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (strstr(folded, signs[i].text))
			raise(s, signs[i].score, signs[i].why);
}

static void fold_text(struct screen *s, const char *text, size_t len, struct cs_buf *folded)
{
	if (len > LONG)
		raise(s, SCREEN_SUSPICIOUS, "longer than any description needs to be");
	look_at_characters(s, (const unsigned char *)text, len > LOOK ? LOOK : len, folded);
}

void screen_text(struct screen *s, const char *text, size_t len)
{
	struct cs_buf folded CS_BUF_AUTO = CS_BUF(LOOK * 2);
	CS_FREE struct words *w = cs_new(struct words); /* too large for a stack */

	fold_text(s, text, len, &folded);
	look_for_signs(s, cs_buf_text(&folded));
	split(w, cs_buf_text(&folded));
	for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
		if (says(w, phrases[i].pattern))
			raise(s, phrases[i].score, phrases[i].why);
}

/* ---- values that a schema fills in ---- */

static bool is_own_host(const char *url)
{
	const char *host = strstr(url, "://") + 3;

	return !strncmp(host, "localhost", 9) || !strncmp(host, "127.", 4) || !strncmp(host, "[::1]", 5);
}

static bool is_command(const char *t)
{
	static const char *const starts[] = { "curl ", "wget ", "bash -", "sh -", "nc ", "python -c", "python3 -c", "perl -e", "sudo ", "eval ",
					      "powershell ", "rm -", "chmod ", "node -e" };

	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		if (!strncmp(t, starts[i], strlen(starts[i])))
			return true;
	return strstr(t, "$(") || strstr(t, "&& ") || strstr(t, "| sh") || strstr(t, "| bash") || strstr(t, "; ") || strchr(t, '`');
}

void screen_default(struct screen *s, const char *text, size_t len)
{
	struct cs_buf folded CS_BUF_AUTO = CS_BUF(LOOK * 2);
	const char *t;

	fold_text(s, text, len, &folded);
	t = cs_buf_text(&folded);
	t += strspn(t, " \t\n");
	look_for_signs(s, t);
	if (strstr(t, "://") && !is_own_host(t))
		raise(s, SCREEN_SUSPICIOUS, "a default that is an address");
	if (is_command(t))
		raise(s, SCREEN_SUSPICIOUS, "a default that is a command");
	if (t[0] == '-' && (t[1] == '-' ? t[2] >= 'a' && t[2] <= 'z' : t[1] >= 'a' && t[1] <= 'z'))
		raise(s, SCREEN_SUSPICIOUS, "a default that is an option of a command");
}

/* ---- names ---- */

unsigned screen_character(const char *s)
{
	uint32_t c;

	(void)decode((const unsigned char *)s, strlen(s), &c);
	return c;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

bool screen_near(const char *a, const char *b, size_t most)
{
	enum { MAX = 128 };
	size_t n = strlen(a), m = strlen(b);
	uint8_t row[3][MAX + 1];

	if (n > MAX || m > MAX || (n > m ? n - m : m - n) > most)
		return false;
	for (size_t j = 0; j <= m; j++)
		row[0][j] = (uint8_t)j;
	for (size_t i = 1; i <= n; i++) {
		uint8_t *now = row[i % 3], *up = row[(i + 2) % 3], *upper = row[(i + 1) % 3], best = MAX;

		now[0] = (uint8_t)i;
		for (size_t j = 1; j <= m; j++) {
			size_t d = least(least(up[j] + 1u, now[j - 1] + 1u), up[j - 1] + (a[i - 1] != b[j - 1]));

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = least(d, upper[j - 2] + 1u);
			now[j] = (uint8_t)d;
			best = d < best ? (uint8_t)d : best;
		}
		if (best > most + 1)
			return false;
	}
	return row[n % 3][m] <= most;
}

/* The next letter as the eye takes it; 0 at the end. */
static char skeleton_next(const char **p, char before)
{
	char c;

	do {
		c = **p;
		if (!c)
			return 0;
		++*p;
		c = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
		if (c == 'r' && **p == 'n')
			c = 'm', ++*p;
		c = c == '0' ? 'o' : c == '1' || c == 'i' || c == '|' ? 'l' : c == '5' ? 's' : c;
	} while (c == '-' || c == '_' || c == '.' || c == '/' || c == ':' || c == ' ' || c == before);
	return c;
}

bool screen_alike(const char *a, const char *b)
{
	char x = 0, y = 0;

	do {
		x = skeleton_next(&a, x);
		y = skeleton_next(&b, y);
		if (x != y)
			return false;
	} while (x);
	return true;
}
