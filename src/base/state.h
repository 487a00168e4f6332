/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - where things of the calling user are kept between commands.
 *
 * root: /var/lib/caisson; others: $XDG_STATE_HOME/caisson, else ~/.local/state/caisson;
 * $CAISSON_STATE overrides both, unless it is somebody else's.
 */
#pragma once
#include "base/err.h"

/* NULL: there is no home. The caller's to free. */
char *cs_state_dir(void);

/* A directory that is ours alone (our uid, no right for others, no symlink), made if it is missing.
 * What lies in it is believed, so another kind of directory is refused.  A descriptor, or negative. */
int cs_private_dir(const char *path, struct cs_err *err);
