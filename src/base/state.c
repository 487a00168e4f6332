/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

char *cs_state_dir(void)
{
	const char *own = getenv("CAISSON_STATE"), *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	struct stat st;

	/* Somebody else's, left in the environment by su or sudo, is not for us. */
	if (own && *own == '/' && (stat(own, &st) < 0 || st.st_uid == geteuid()))
		return cs_strdup(own);
	if (geteuid() == 0)
		return cs_strdup("/var/lib/caisson");
	if (xdg && *xdg == '/')
		return cs_printf("%s/caisson", xdg);
	return home && *home == '/' ? cs_printf("%s/.local/state/caisson", home) : NULL;
}

static int make_with_parents(const char *path)
{
	CS_FREE char *copy = cs_strdup(path);

	for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return -1;
		*p = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

int cs_private_dir(const char *path, struct cs_err *err)
{
	CS_FD int fd = -1;
	struct stat st;
	char shown[256];

	cs_escape_to(shown, sizeof shown, path);
	if (mkdir(path, 0700) < 0 && errno == ENOENT && make_with_parents(path) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "make the directory '%s'", shown);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cs_fail(err, errno == ELOOP || errno == ENOTDIR ? CS_E_DENIED : CS_E_SYSTEM, errno, "open the directory '%s'", shown);
	if (st.st_uid != geteuid())
		return cs_fail(err, CS_E_DENIED, 0, "'%s' belongs to user %u, not to you: remove it, or set CAISSON_STATE", shown, (unsigned)st.st_uid);
	if (st.st_mode & 077)
		return cs_fail(err, CS_E_DENIED, 0, "'%s' has mode %04o, so others may reach into it: chmod 700 '%s', if what lies there is yours",
			       shown, (unsigned)st.st_mode & 07777, shown);
	return CS_TAKE_FD(fd);
}
