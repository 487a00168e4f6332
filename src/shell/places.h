/* SPDX-License-Identifier: Apache-2.0 */
/* places.h - names that mean something wherever they stand: of secrets, of files that others run or obey by themselves.
 *
 * What it knows      the lists, and nothing of a policy or a script.
 * May include        nothing.
 * Trust              paths are hostile; they are absolute, without . and .. */
#pragma once
#include <stdbool.h>

bool sh_within(const char *path, const char *dir); /* it, or below it */
/* Where secrets lie, whatever the policy says.  pattern: whether one could be among what it stands for. */
bool sh_is_secret(const char *path, bool pattern);
bool sh_is_persistent(const char *path);
bool sh_names_secret(const char *name); /* of a variable */
