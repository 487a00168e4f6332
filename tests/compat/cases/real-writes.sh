# SPDX-License-Identifier: Apache-2.0
# title: what is written to a workspace for real has the caller's owner and mode outside
# needs: bash
# write: real
umask 027; mkdir -p d/e; echo x > d/e/f; ln -s f d/e/l; ln d/e/f d/e/h; chmod 4755 d/e/f 2>/dev/null; chmod 755 d/e/f
install -m 600 /dev/null private; echo more >> d/e/f; mkfifo d/pipe; cp -a d copy; mv copy moved; rm -r moved/e; touch -d @0 d/e/f
stat -c '%n %a %h' d d/e d/e/f private; [ "$(stat -c %u .)" = "$(id -u)" ] && [ "$(stat -c %u d/e/f)" = "$(id -u)" ] && echo mine
