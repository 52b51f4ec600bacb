# SPDX-License-Identifier: Apache-2.0
# Completion for fish: the program says what may come next, and names of files are offered, too.
complete -c loraster -a '(loraster --complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
