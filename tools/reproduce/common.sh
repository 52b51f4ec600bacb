# SPDX-License-Identifier: Apache-2.0
# Functions that the scripts of this folder share. A script defines usage(), sets `root`, `program`, `out` and
# `figures`, and then sources this.

# read_options ARGUMENT...: sets the variable of each option (--mu-as: mu_as). The options are those of usage().
read_options() {
    while [ $# -gt 0 ]; do
        case "$1" in
        --help)
            usage
            exit 0
            ;;
        --no-figures)
            figures=no
            shift
            continue
            ;;
        esac
        if [[ $1 != --* || $(usage) != *$'\n'"  $1 "* ]]; then
            echo "error: there is no option $1: see --help" >&2
            exit 2
        fi
        if [ $# -lt 2 ]; then
            echo "error: $1 needs a value" >&2
            exit 2
        fi
        local name=${1#--}
        declare -g "${name//-/_}=$2"
        shift 2
    done
}

# Ends the script if the program or a Python module is missing.
check_tools() {
    if [ ! -x "$program" ]; then
        echo "error: there is no program $program: build it, or give --program FILE" >&2
        exit 2
    fi
    program=$(realpath "$program")
    python=${PYTHON:-/usr/bin/python3}
    local modules=(numpy h5py) missing
    [ "$figures" = no ] || modules+=(matplotlib)
    local find='import importlib.util, sys; print(*(name for name in sys.argv[1:] if not importlib.util.find_spec(name)))'
    missing=$("$python" -c "$find" "${modules[@]}" 2>/dev/null) || missing=${modules[*]}
    if [ -n "$missing" ]; then
        # shellcheck disable=SC2086,SC2059 # several names, each by the format
        echo "error: $python lacks $missing: install$(printf " python3-%s" $missing) (tools/install_packages.sh reproduce)" >&2
        exit 2
    fi
}

# enter SETTINGS: the output folder, which holds one experiment, becomes the current one.
enter() {
    mkdir -p "$out"
    cd "$out"
    if [ -e settings.txt ] && [ "$(cat settings.txt)" != "$1" ]; then
        echo "error: $out holds another experiment ($(cat settings.txt)): give another --out, or remove it" >&2
        exit 2
    fi
    echo "$1" >settings.txt
}

lr() { "$program" "$@"; }

# needed FILE WORDS: whether the file is still to be made, with a line that says so.
needed() {
    if [ -e "$1" ]; then
        echo "== $2: $1 is there"
        return 1
    fi
    echo "== $2"
}
