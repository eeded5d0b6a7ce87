#!/bin/sh
# A step as those of neuroimaging packages are: a script that calls a hundred short programs.
i=0
while [ "$i" -lt 100 ]; do
    i=$(expr "$i" + 1)
done
echo "$i" > "$1"
