# Shared by the scripts of this folder: `. tools/lib.sh` after `cd` to the project's root.
# shellcheck shell=bash

SUITE=trixie   # the first Debian with Python 3.13, Docker >= 25 (healthcheck start_interval) and compose v2

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { local code=$1; shift; say "$@"; exit "$code"; }
have() { type -P "$1" > /dev/null; }
version() { sed -n 's/^__version__ = "\(.*\)"$/\1/p' contract/pallas_contract/__init__.py; }

# Does the SQLite of a Python load extensions? Who compiles one by hand or by pyenv gets none of these, unless told
# otherwise: examples/04-percolate cannot run on it.
loads_extensions() { "$1" -c 'import sqlite3; sqlite3.Connection.enable_load_extension' 2> /dev/null; }

root_on_debian() { [ "$(id -u)" = 0 ] && have apt-get && [ "$(. "${OS_RELEASE:-/etc/os-release}" && printf %s "$ID")" = debian ]; }

# Debian's mirror as this machine has it, from deb822 (*.sources) or one-line (*.list) files.
debian_mirror() {
  local suites='^(bookworm|trixie|forky|sid|stable|testing|unstable)$' file mirror
  for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    mirror=$(awk -v suites="$suites" '
      function flush() { if (uri && hit) { print uri; found = 1; exit } uri = ""; hit = 0 }
      /^URIs:/ { uri = $2 }
      /^Suites:/ { for (i = 2; i <= NF; i++) if ($i ~ suites) hit = 1 }
      /^[ \t]*$/ { flush() }
      END { if (!found) flush() }' "$file")
    [ -z "$mirror" ] || { printf '%s\n' "$mirror"; return; }
  done
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$file" ] || continue
    mirror=$(awk -v suites="$suites" '$1 == "deb" { sub(/\[[^]]*\] */, ""); if ($3 ~ suites) { print $2; exit } }' "$file")
    [ -z "$mirror" ] || { printf '%s\n' "$mirror"; return; }
  done
  die 1 "no Debian mirror found in /etc/apt/sources.list or sources.list.d"
}

# Does apt offer PACKAGE at VERSION or newer, without any pin of ours?
offered() {
  local candidate
  candidate=$(apt-cache policy "$1" | awk '/Candidate:/ {print $2}')
  [ -n "$candidate" ] && [ "$candidate" != '(none)' ] && dpkg --compare-versions "$candidate" ge "$2"
}

# apt_install PACKAGE VERSION OTHER...: from the machine's own suite when PACKAGE is recent enough there, else from
# $SUITE, which is added pinned below everything installed so that nothing else moves to it.
apt_install() {
  local package=$1 least=$2 from=() keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  shift 2
  apt-get update -qq
  if ! offered "$package" "$least"; then
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$(debian_mirror)" "$SUITE" "$keyring" \
      > "/etc/apt/sources.list.d/$SUITE.sources"
    printf 'Package: *\nPin: release n=%s\nPin-Priority: 100\n' "$SUITE" > "/etc/apt/preferences.d/$SUITE"
    apt-get update -qq
    from=(-t "$SUITE")
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${from[@]}" "$package" "$@" > /dev/null
}

# english MODULE FOLDER: copies a command of Kubernetes, in FOLDER of MODULE, into one of the same name here, in a Go module
# whose name is before those of Kubernetes in the alphabet. Whenever kubectl or helm starts, it reads its translations and
# compresses them, for English too: a third of its processor time. These are told, as k8s.io/kubectl has it, that there are none.
english() {
  local place name=${2##*/}
  place=$(GOFLAGS=-mod=mod go list -m -f '{{.Dir}}' "$1")
  mkdir -p "$name" english
  install -m 644 "$place/$2/$name.go" "$name/"
  printf 'package main\n\nimport _ "%s/english"\n' "$(go list -m)" > "$name/english.go"
  cat > english/english.go << 'G'
// Package english is initialized before what asks for a translation.
package english

import "k8s.io/kubectl/pkg/util/i18n"

func init() { _ = i18n.SetLoadTranslationsFunc(func() error { return nil }) }
G
}
