# SPDX-License-Identifier: Apache-2.0
# title: tar, gzip and friends pack and unpack
# needs: bash tar gzip
mkdir -p src/deep; for i in $(seq 200); do echo "file $i" > src/deep/$i; done; ln -s deep src/link; chmod 750 src/deep/7
tar czf a.tgz src; tar tzf a.tgz | wc -l; mkdir out; tar xzpf a.tgz -C out; diff -r src out/src && echo same
stat -c %a out/src/deep/7; readlink out/src/link
for c in xz bzip2 zstd; do
	[ -x /usr/bin/$c ] && { tar -cf a.$c --use-compress-program=$c src && tar -tf a.$c | wc -l; }
done
gzip -kn src/deep/1; zcat src/deep/1.gz; gunzip -t src/deep/1.gz && echo whole
tar --sort=name --mtime=@0 --owner=0 --group=0 -cf - src | sha256sum
