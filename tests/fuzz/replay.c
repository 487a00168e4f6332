/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target over files, one process each: the corpus as a test. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int one(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n;
	int status;
	pid_t pid;

	if (!f)
		return -1;
	n = fread(data, 1, sizeof data, f);
	fclose(f);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		uint8_t *exact = malloc(n ? n : 1); /* so that reading past the end is seen */

		for (size_t i = 0; i < n; i++)
			exact[i] = data[i];
		alarm(20);
		LLVMFuzzerTestOneInput(exact, n);
		free(exact);
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0;

	for (int i = 1; i < argc; i++) {
		int status = one(argv[i]);

		printf("%s %d - fuzz corpus: %s\n", status ? "not ok" : "ok", i, argv[i]);
		status ? failed++ : passed++;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}
