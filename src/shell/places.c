/* SPDX-License-Identifier: Apache-2.0 */
/* places.c - the lists: where secrets lie, and which files others run or obey by themselves. */
#include "shell/places.h"

#include <fnmatch.h>
#include <string.h>

bool sh_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1)
		return true;
	return !strncmp(path, dir, n) && (path[n] == '/' || !path[n]);
}

/* Files that others run, obey or believe by themselves. */
bool sh_is_persistent(const char *path)
{
	static const char *const names[] = { ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc",
					     ".cshrc", ".tcshrc", ".login", ".xinitrc", ".xsession", ".inputrc", ".gitconfig", ".vimrc", ".exrc", ".npmrc",
					     ".pypirc", ".netrc", ".pam_environment", "authorized_keys", "authorized_keys2", ".rhosts", ".shosts", "sudoers",
					     "rc.local", ".mcp.json", ".curlrc", ".wgetrc", ".screenrc", ".tmux.conf" };
	static const char *const dirs[] = { "/etc/cron.d", "/etc/cron.daily", "/etc/cron.hourly", "/etc/cron.weekly", "/etc/cron.monthly", "/var/spool/cron",
					    "/etc/systemd", "/lib/systemd", "/usr/lib/systemd", "/run/systemd", "/etc/init.d", "/etc/rc.d", "/etc/profile.d",
					    "/etc/sudoers.d", "/etc/pam.d", "/etc/ld.so.conf.d", "/etc/udev", "/etc/xdg/autostart", "/etc/ssh" };
	static const char *const below[] = { "/.git/hooks/", "/.config/autostart/", "/.config/systemd/", "/.ssh/", "/.config/fish/", "/.local/share/systemd/",
					     "/.claude/", "/.cursor/", "/.vscode/", "/.github/workflows/", "/.config/git/" };
	static const char *const files[] = { "/etc/crontab", "/etc/profile", "/etc/bash.bashrc", "/etc/environment", "/etc/ld.so.preload", "/etc/hosts",
					     "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/sudoers", "/etc/inittab", "/etc/anacrontab" };
	const char *base = strrchr(path, '/');

	for (size_t i = 0; base && i < sizeof names / sizeof *names; i++)
		if (!strcmp(base + 1, names[i]))
			return true;
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		if (sh_within(path, dirs[i]))
			return true;
	for (size_t i = 0; i < sizeof below / sizeof *below; i++)
		if (strstr(path, below[i]))
			return true;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (!strcmp(path, files[i]))
			return true;
	return false;
}

/* Could a name that the pattern matches end so? */
static bool may_end_with(const char *pattern, const char *end)
{
	size_t n = strlen(pattern), m = strlen(end);

	for (size_t i = 1; i <= n && i <= m; i++) {
		char c = pattern[n - i];

		if (c == '*' || c == ']')
			return true;
		if (c != '?' && c != end[m - i])
			return false;
	}
	return n >= m;
}

/* Could a directory on the way be one that holds secrets? Names that begin with a dot are doubted elsewhere. */
static bool may_be_below(const char *path)
{
	static const char *const places[] = { "/proc", "/run/secrets", "/var/run/secrets", "/etc/ssl/private", "/etc/ssh", "/etc/sudoers.d", "/dev" };
	char start[256];

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const char *p = path, *q = places[i];

		/* As many components of the path as the place has. */
		for (; *q; q++)
			if (*q == '/' && *p)
				p += 1 + strcspn(p + 1, "/");
		if ((size_t)(p - path) >= sizeof start)
			return true;
		memcpy(start, path, (size_t)(p - path));
		start[p - path] = 0;
		if (fnmatch(start, places[i], FNM_PATHNAME) == 0)
			return true;
	}
	return false;
}

/* Where secrets lie, whatever the policy says. */
bool sh_is_secret(const char *path, bool pattern)
{
	static const char *const files[] = { "/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/shadow.bak", "/etc/shadow.old", "/etc/gshadow.bak", "/etc/sudoers", "/etc/krb5.keytab", "/etc/security/opasswd", "/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port" };
	static const char *const below[] = { "/.ssh/", "/.gnupg/", "/.aws/", "/.azure/", "/.config/gcloud/", "/.kube/", "/.docker/config.json", "/.password-store/",
					     "/.mozilla/", "/.config/google-chrome/", "/.config/chromium/", "/.local/share/keyrings/", "/etc/ssl/private/",
					     "/etc/ssh/ssh_host_", "/var/run/secrets/", "/run/secrets/", "/.config/gh/", "/.config/op/", "/.terraform.d/", "/.config/rclone/",
					     "/etc/sudoers.d/", "/var/backups/", "/.vault-token/", "/.config/hub/", "/.cargo/credentials", "/.subversion/auth/", "/.m2/settings.xml" };
	static const char *const names[] = { ".env", ".netrc", ".pgpass", ".git-credentials", ".npmrc", ".pypirc", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa",
					     "credentials", ".bash_history", ".zsh_history", ".python_history", ".mysql_history", ".psql_history", "secrets.yml",
					     "secrets.yaml", "master.key", ".htpasswd", ".my.cnf", "shadow", ".envrc", ".s3cfg", ".boto", ".vault-token", "credentials.json", ".ash_history", ".histfile", "wp-config.php", "terraform.tfstate", "terraform.tfstate.backup" };
	static const char *const ends[] = { ".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks", ".env", ".tfvars" };
	const char *base = strrchr(path, '/');
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (!strcmp(path, files[i]))
			return true;
	for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
		size_t m = strlen(below[i]) - 1;

		if (strstr(path, below[i]) || (n >= m && below[i][m] == '/' && !strncmp(path + n - m, below[i], m))) /* the directory itself */
			return true;
	}
	for (size_t i = 0; base && i < sizeof names / sizeof *names; i++)
		if (pattern ? fnmatch(base + 1, names[i], FNM_PERIOD) == 0 : !strcmp(base + 1, names[i]))
			return true;
	for (size_t i = 0; pattern && i < sizeof files / sizeof *files; i++)
		if (fnmatch(path, files[i], FNM_PATHNAME | FNM_PERIOD) == 0)
			return true;
	for (size_t i = 0; pattern && base && i < sizeof ends / sizeof *ends; i++)
		if (may_end_with(base + 1, ends[i]) && !sh_within(path, "/usr") && !sh_within(path, "/etc/ssl/certs"))
			return true;
	if (pattern && may_be_below(path))
		return true;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (n > strlen(ends[i]) && !strcmp(path + n - strlen(ends[i]), ends[i]) && strncmp(path, "/etc/ssl/certs/", 15) && strncmp(path, "/usr/", 5))
			return true;
	if (base && !strncmp(base + 1, ".env.", 5) && strcmp(base + 1, ".env.example") && strcmp(base + 1, ".env.sample"))
		return true;
	/* Of other processes, and of this one: the environment, memory, descriptors. */
	if (!strncmp(path, "/proc/", 6) && (strstr(path, "/environ") || strstr(path, "/mem") == path + n - 4 || strstr(path, "/fd/") || strstr(path, "/root") || strstr(path, "/cwd")))
		return strncmp(path, "/proc/meminfo", 13) != 0;
	return false;
}

bool sh_names_secret(const char *name)
{
	static const char *const parts[] = { "TOKEN", "SECRET", "PASS", "_KEY", "APIKEY", "CRED", "AUTH_SOCK" };

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}
