/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff_patch.c - a change set as a patch that git and people read. */
#include "cli/cmd_diff.h"

#include "base/text.h"

#include <string.h>

enum { HUNKS_MAX = 256 << 20, CONTEXT = 3 };

/* ---- what git has no word for ---- */

static const char *special(mode_t mode)
{
	return S_ISFIFO(mode) ? "FIFO" : S_ISSOCK(mode) ? "socket" : S_ISCHR(mode) ? "character device" : S_ISBLK(mode) ? "block device" : NULL;
}

static const char *type_name(mode_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "symlink" : special(mode) ? special(mode) : "thing";
}

/* git writes one bit of a file's mode down; with a usual umask the rest follows from it. */
static bool mode_is_usual(mode_t mode)
{
	static const mode_t usual[] = { 0644, 0755, 0664, 0775, 0600, 0700 };

	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if ((mode & 07777) == usual[i])
			return true;
	return false;
}

static bool git_says_all(mode_t mode)
{
	return S_ISREG(mode) && ((mode & 07777) == 0644 || (mode & 07777) == 0755);
}

static void remark_new(struct diff *d, const struct txn_change *c)
{
	unsigned mode = c->new.mode & 07777;

	if (special(c->new.mode))
		diff_remark(d, c, false, "new %s, mode %04o", special(c->new.mode), mode);
	else if (S_ISDIR(c->new.mode) && (c->subtree == 0 || mode & 07002))
		diff_remark(d, c, false, "new %sdirectory, mode %04o", c->subtree ? "" : "empty ", mode);
	else if (S_ISREG(c->new.mode) && !mode_is_usual(c->new.mode))
		diff_remark(d, c, false, "mode %04o", mode);
}

static void remark_old(struct diff *d, const struct txn_change *c)
{
	if (special(c->old.mode))
		diff_remark(d, c, false, "%s deleted", special(c->old.mode));
	else if (S_ISDIR(c->old.mode) && c->subtree == 0)
		diff_remark(d, c, false, "empty directory deleted");
}

static void remark_metadata(struct diff *d, const struct txn_change *c)
{
	if (c->differs & TXN_MODE && !(git_says_all(c->old.mode) && git_says_all(c->new.mode)))
		diff_remark(d, c, false, "mode %04o -> %04o", c->old.mode & 07777, c->new.mode & 07777);
	if (c->differs & TXN_OWNER)
		diff_remark(d, c, false, "owner %u:%u -> %u:%u", c->old.uid, c->old.gid, c->new.uid, c->new.gid);
	if (c->differs & TXN_XATTR)
		diff_remark(d, c, false, "extended attributes differ");
	if (c->differs == TXN_TIMES && !S_ISDIR(c->new.mode))
		diff_remark(d, c, false, "only its times differ");
	if (c->differs & TXN_CONTENT && special(c->new.mode))
		diff_remark(d, c, false, "another %s", special(c->new.mode));
}

static void remarks(struct diff *d, const struct txn_change *c)
{
	char from[256];

	diff_verdicts(d, c);
	switch (c->kind) {
	case TXN_ADDED:
		remark_new(d, c);
		break;
	case TXN_DELETED:
		remark_old(d, c);
		break;
	case TXN_TYPE:
		diff_remark(d, c, false, "was a %s, is a %s", type_name(c->old.mode), type_name(c->new.mode));
		break;
	case TXN_RENAMED:
		if (S_ISDIR(c->new.mode))
			diff_remark(d, c, false, "directory renamed from '%s'", cs_escape_to(from, sizeof from, c->from));
		/* fall through */
	case TXN_CHANGED:
		remark_metadata(d, c);
		break;
	}
}

/* ---- what git knows ---- */

static const char *git_mode(mode_t mode)
{
	return S_ISLNK(mode) ? "120000" : mode & S_IXUSR ? "100755" : "100644";
}

static void start_line(struct diff *d, const char *text)
{
	cs_buf_str(&d->out, d->colour ? "\033[1m" : "");
	cs_buf_str(&d->out, text);
}

static void end_line(struct diff *d)
{
	cs_buf_str(&d->out, d->colour ? "\033[m\n" : "\n");
}

static void line(struct diff *d, const char *text, const char *rest)
{
	start_line(d, text);
	cs_buf_str(&d->out, rest);
	end_line(d);
}

static void name_line(struct diff *d, const char *text, const char *prefix, const char *path)
{
	start_line(d, text);
	diff_name(d, &d->out, prefix, path);
	/* Where a name in a line "---" or "+++" ends is told by a TAB. */
	if (*prefix && strchr(path, ' '))
		cs_buf_char(&d->out, '\t');
	end_line(d);
}

/* One entry of the patch; old or new is 0 if it has no such side. */
struct part {
	const struct txn_change *c;
	const char *from, *to;
	mode_t old, new;
};

static void header(struct diff *d, const struct part *p)
{
	start_line(d, "diff --git ");
	diff_name(d, &d->out, "a/", p->from);
	cs_buf_char(&d->out, ' ');
	diff_name(d, &d->out, "b/", p->to);
	end_line(d);
	if (!p->old) {
		line(d, "new file mode ", git_mode(p->new));
	} else if (!p->new) {
		line(d, "deleted file mode ", git_mode(p->old));
	} else if (strcmp(git_mode(p->old), git_mode(p->new))) {
		line(d, "old mode ", git_mode(p->old));
		line(d, "new mode ", git_mode(p->new));
	}
	if (p->old && p->new && strcmp(p->from, p->to)) {
		name_line(d, "rename from ", "", p->from);
		name_line(d, "rename to ", "", p->to);
	}
}

static void label(struct diff *d, const char *prefix, const char *path, bool there)
{
	if (there)
		diff_name(d, &d->out, prefix, path);
	else
		cs_buf_str(&d->out, "/dev/null");
}

static void binary(struct diff *d, const struct part *p, bool large)
{
	char old[32], new[32];

	cs_buf_str(&d->out, "Binary files ");
	label(d, "a/", p->from, p->old);
	cs_buf_str(&d->out, " and ");
	label(d, "b/", p->to, p->new);
	cs_buf_str(&d->out, " differ");
	if (large) {
		cs_format_size(old, sizeof old, p->old ? p->c->old.size : 0);
		cs_format_size(new, sizeof new, p->new ? p->c->new.size : 0);
		cs_buf_fmt(&d->out, " (%s -> %s)", old, new);
	}
	cs_buf_char(&d->out, '\n');
}

static void hunks(struct diff *d, const struct part *p, const struct diff_sides *s)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(HUNKS_MAX);
	const struct txn_patch_opts o = { .context = CONTEXT, .colour = d->colour, .escape = d->escape };

	(void)txn_patch(&text, cs_buf_text(&s->old.text), p->old ? s->old.text.len : 0,
			cs_buf_text(&s->new.text), p->new ? s->new.text.len : 0, &o);
	if (text.over) {
		binary(d, p, /* large= */ true);
		return;
	}
	if (!text.len) /* an empty file came or went */
		return;
	if (p->old)
		name_line(d, "--- ", "a/", p->from);
	else
		line(d, "--- ", "/dev/null");
	if (p->new)
		name_line(d, "+++ ", "b/", p->to);
	else
		line(d, "+++ ", "/dev/null");
	cs_buf_add(&d->out, text.data, text.len);
}

static void write_part(struct diff *d, const struct part *p, const struct diff_sides *s)
{
	bool moved = p->old && p->new && strcmp(p->from, p->to), differs = diff_content_differs(p->c);

	if (!p->old && !p->new)
		return;
	if (!moved && !differs && !strcmp(git_mode(p->old), git_mode(p->new)))
		return; /* the remarks said it */
	header(d, p);
	if (!differs || s->unreadable)
		return;
	if ((p->old && s->old.binary) || (p->new && s->new.binary))
		binary(d, p, (p->old && s->old.large) || (p->new && s->new.large));
	else
		hunks(d, p, s);
}

static void write_change(struct diff *d, const struct txn_change *c)
{
	mode_t old = diff_has_content(c->old.mode) ? c->old.mode : 0, new = diff_has_content(c->new.mode) ? c->new.mode : 0;
	struct part p = { c, diff_old_path(c), c->path, old, new };
	struct diff_sides s = { 0 };

	remarks(d, c);
	if (!old)
		p.from = c->path;
	if (!new)
		p.to = p.from;
	if ((old || new) && diff_content_differs(c))
		diff_read(d, c, &s);
	if (s.unreadable)
		diff_remark(d, c, /* loud= */ true, "its content cannot be read");
	if (old && new && (old & S_IFMT) != (new & S_IFMT)) { /* to git that is a deletion and an addition */
		write_part(d, &(struct part){ c, p.from, p.from, old, 0 }, &s);
		write_part(d, &(struct part){ c, p.to, p.to, 0, new }, &s);
	} else {
		write_part(d, &p, &s);
	}
	diff_sides_done(&s);
}

void diff_patch(struct diff *d)
{
	for (size_t i = 0; i < d->changes.n && !d->closed; i++) {
		if (!diff_shows(d, &d->changes.v[i]))
			continue;
		write_change(d, &d->changes.v[i]);
		diff_flush(d);
	}
}
