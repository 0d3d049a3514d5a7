#!/usr/bin/perl
# ps(1) as macOS has it, over a hidden /proc of Linux: only the words that Pawl uses. Programs of the system hide
# their environment there, and so do they here. The first two lines of `values` are the folder and the boot time.
use strict;
use POSIX 'strftime';

exit 1 if -e '@VALUES@.silent';
open(my $values, '<', '@VALUES@') or die;
chomp(my ($proc, $boot) = <$values>);
die "ps: the locale or time zone of the user\n" if $ENV{LC_ALL} ne 'C' or $ENV{TZ} ne 'UTC0';
my (@columns, @pids, $shows_environment);
while (defined(my $word = shift)) {
  if ($word eq '-o') { push @columns, shift =~ s/=$//r }
  elsif ($word eq '-p') { @pids = (shift) }
  elsif ($word =~ /^-ax(ww(E))?$/) { @pids = map { m{/(\d+)$} ? $1 : () } glob("$proc/[0-9]*"); $shows_environment = $2 }
  else { die "ps: illegal option -- $word\n" }
}
sub slurp { local $/; open(my $file, '<', "$proc/$_[0]") or return ''; my $text = <$file>; $text // '' }
my $count = 0;
for my $pid (sort { $a <=> $b } @pids) {
  slurp("$pid/stat") =~ /^\d+ \((.*)\) (.*)$/s or next;
  my @fields = split ' ', $2;
  my $program = readlink("$proc/$pid/exe") // $1;
  my $environment = $shows_environment && $program !~ m{^/(usr/)?s?bin/} ? slurp("$pid/environ") : '';
  my %value = (
    pid => sprintf('%5d', $pid), ppid => sprintf('%5d', $fields[1]), pgid => sprintf('%5d', $fields[2]),
    stat => $fields[0] =~ /Z/ ? 'Z' : $fields[0] eq 'R' ? 'R+' : $fields[0] eq 'T' ? 'T' : 'Ss',
    lstart => strftime('%a %b %e %H:%M:%S %Y', gmtime($boot + int($fields[19] / 100))),
    comm => $program, command => join(' ', split /\0/, slurp("$pid/cmdline") . $environment),
  );
  print join(' ', map { $value{$_} // die "ps: $_: keyword not found\n" } @columns), "\n";
  $count++;
}
exit($count ? 0 : 1);
