# SPDX-License-Identifier: Apache-2.0
# Completion for bash: the program says what may come next; where it says nothing, names of files are offered.
_loraster() {
    local word
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        COMPREPLY+=("$word")
    done < <("$1" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _loraster loraster
