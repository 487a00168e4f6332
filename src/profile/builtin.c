/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.c - the built-in profiles, compiled in by tools/gen_profiles.c.
 *
 * A list is one string with a NUL after each item and an empty item at the
 * end: no array of pointers for the loader to relocate at every start. */
#include "profile/internal.h"

#include <string.h>

struct builtin {
	const char *text; /* the YAML it came from */
	const char *name, *description, *extends;
	const char *read, *write, *hide, *protect, *allow, *pass, *set;
	enum profile_isolation isolation;
	enum profile_workspace workspace;
	enum profile_proc proc;
	enum profile_system system;
	enum profile_commit commit;
	enum profile_unsafe unsafe;
	enum profile_uncertain uncertain;
	enum profile_unexpected unexpected;
	uint64_t commit_age, commit_size;
	struct profile_limits limits;
	protection_set require;
	bool locked;
};

static const struct builtin builtins[] = {
#include "gen/profiles.inc"
};

static void unpack(struct cs_strv *to, const char *items)
{
	for (; *items; items += strlen(items) + 1)
		cs_strv_add(to, items);
}

static void copy(const struct builtin *b, struct profile *p)
{
	*p = (struct profile){
		.name = cs_strdup(b->name),
		.description = b->description ? cs_strdup(b->description) : NULL,
		.extends = b->extends ? cs_strdup(b->extends) : NULL,
		.locked = b->locked,
		.isolation = b->isolation,
		.workspace = b->workspace,
		.proc = b->proc,
		.system = b->system,
		.commit = b->commit,
		.commit_age = b->commit_age,
		.commit_size = b->commit_size,
		.shell = { .unsafe = b->unsafe, .uncertain = b->uncertain, .unexpected = b->unexpected },
		.limits = b->limits,
		.require = b->require,
	};
	unpack(&p->files_read, b->read);
	unpack(&p->files_write, b->write);
	unpack(&p->files_hide, b->hide);
	unpack(&p->commit_protect, b->protect);
	unpack(&p->commit_allow, b->allow);
	unpack(&p->env_pass, b->pass);
	unpack(&p->env_set, b->set);
}

int profile_find_builtin(const char *name, const struct load *up, struct profile *ret, struct cs_err *err)
{
	(void)up; /* already merged: nothing more is loaded */
	(void)err;
	for (size_t i = 0; i < profile_builtin_count(); i++)
		if (!strcmp(builtins[i].name, name)) {
			copy(&builtins[i], ret);
			return 1;
		}
	return 0;
}

size_t profile_builtin_count(void)
{
	return sizeof builtins / sizeof *builtins;
}

const char *profile_builtin_name(size_t i)
{
	return builtins[i].name;
}

const char *profile_builtin_summary(size_t i)
{
	return builtins[i].description ? builtins[i].description : "";
}

const char *profile_builtin_text(size_t i)
{
	return builtins[i].text;
}
