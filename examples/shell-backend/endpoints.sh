#!/bin/sh
# A backend in shell: keeps one file per family, a line for each address that this node serves, and who answers there.
#
#   turnout print --watch -o jsonl --source … | endpoints.sh DIRECTORY
#
# writes into DIRECTORY/IPv4.txt and IPv6.txt:
#
#   *:30080/TCP → reject  (shop/web:http/TCP)
#   10.96.0.20:80/TCP → 10.1.1.5:8080 10.1.2.5:8080  (shop/cart:http/TCP)
#
# Each line of input is a change set: what is new or changed (set) and what is gone (delete); a full one replaces everything.
# The pools that a line shows are those of anyone; sources with rules of their own are left out to keep this short.
set -eu
directory=${1:?usage: endpoints.sh DIRECTORY}
mkdir -p "$directory"

# Rows as lines "key TAB address TAB servers".
lines='.set[] | . as $row
  | def place(ip; port): if ip | contains(":") then "[\(ip)]:\(port)" else "\(ip):\(port)" end;
    .destinations[] | .rules[-1].to as $to
  | [ $row.key, place(if .address == "" then "*" else .address end; .port) + "/" + $row.name.protocol,
      (if $to == "cluster" or $to == "local" then [$row.endpoints[$row[$to][]] | place(.ip; .port)] | join(" ") else $to end) ]
  | @tsv'

while IFS= read -r change; do
  family=$(printf '%s' "$change" | jq -r .family)
  rows=$directory/.$family.rows
  [ "$(printf '%s' "$change" | jq .full)" = false ] || : >"$rows"
  {
    printf '%s' "$change" | jq -r '(.delete + [.set[].key])[] | "gone\t" + .'
    cat "$rows"
  } | awk -F '\t' '$1 == "gone" { gone[$2]; next } !($1 in gone)' >"$rows.new"
  printf '%s' "$change" | jq -r "$lines" >>"$rows.new"
  mv "$rows.new" "$rows"
  LC_ALL=C sort -k 2 "$rows" | awk -F '\t' '{ print $2 " → " $3 "  (" $1 ")" }' >"$directory/$family.txt.new"
  mv "$directory/$family.txt.new" "$directory/$family.txt" # readers see all of a change or nothing
done
