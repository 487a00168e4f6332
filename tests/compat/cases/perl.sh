# SPDX-License-Identifier: Apache-2.0
# title: perl forks and talks over loopback
# needs: perl
perl -MIO::Socket::INET -MPOSIX=:sys_wait_h -MTime::HiRes=sleep -MFile::Temp=tempfile -e '
$| = 1;
my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", ReuseAddr => 1) or die "listen: $!";
my $pid = fork // die; 
if (!$pid) { for (1..3) { my $c = $s->accept; my $l = <$c>; print $c uc $l; close $c } exit 9 }
for my $w (qw(one two three)) { my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $s->sockport) or die "connect: $!"; print $c "$w\n"; print scalar <$c>; }
waitpid $pid, 0; print "exit ", $? >> 8, "\n";
pipe my $r, my $w; if (!fork) { print $w "piped\n"; exit } close $w; print <$r>; wait;
my ($fh, $name) = tempfile(UNLINK => 1); print $fh "x" x 100; close $fh; print -s $name, "\n";
open my $p, "-|", "echo from sh" or die; print <$p>;
local $SIG{ALRM} = sub { print "alarm\n" }; Time::HiRes::ualarm(20000); sleep 0.2;
my @k = map { my $n = $_; my $q = fork; if (!$q) { exit $n } $q } 1..10; my $t = 0; for (@k) { waitpid $_, 0; $t += $? >> 8 } print "$t\n";
print join(",", sort { $a <=> $b } map { $_ ** 2 } 1..5), "\n"; printf "%s\n", scalar(localtime(0)) ne "" ? "time" : "no time";
'
