# SPDX-License-Identifier: Apache-2.0
# title: git commits, merges, packs and clones
# needs: git
# write: real
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_DATE='2001-01-01T00:00:00Z' GIT_COMMITTER_DATE='2001-01-01T00:00:00Z' HOME=/tmp
mkdir work; cd work; git init -q -b main .
seq 30 > f; git add f; git commit -qm one; git rev-parse HEAD
git checkout -qb side; sed -i 's/^7$/seven/' f; git commit -qam two; git checkout -q main; sed -i 's/^25$/twenty five/' f; git commit -qam three
git merge -q --no-edit side; git log --oneline --graph; git diff HEAD~1 --stat
git checkout -qb conflict HEAD~1; sed -i 's/^7$/SEVEN/' f; git commit -qam four; git merge side; git status --short; git merge --abort; git checkout -q main
echo untracked > u; mkdir -p d; echo x > d/x; git add d; git status --short; git stash -q; git stash pop -q; git commit -qm five; git tag v1
git mv f g; git commit -qm moved; git log --follow --oneline g | wc -l; git blame -s g | head -2; git grep -c seven
git rebase -q --onto HEAD HEAD; git cherry-pick --no-commit side 2>&1 | head -1; git reset -q --hard
git gc -q; git fsck; git count-objects -v | grep -E '^(in-pack|packs|count)'
git worktree add -q ../tree side; git -C ../tree log --oneline | head -1; git worktree remove ../tree
cd ..; git clone -q work clone; git -C clone log --oneline | head -1; git clone -q --bare "file://$PWD/work" bare.git
cd clone; echo more >> g; git commit -qam six; git push -q ../bare.git HEAD:new; git -C ../bare.git branch | tr -d ' '; git archive HEAD | tar t | head -2
git submodule status; printf '#!/bin/sh\necho hook ran\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo >> g; git commit -qam seven 2>&1; git bisect start HEAD HEAD~2 >/dev/null; git bisect run true > /dev/null 2>&1; echo "bisect $?"
# What differs from run to run: times in the index, reflogs, the packs' time stamps.
cd ..; rm -rf work/.git clone/.git; rm -rf bare.git
