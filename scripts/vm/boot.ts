import { quoted } from "../shell-word.ts";

/** Where Debian's package user-mode-linux has the kernel. */
export const KERNEL_PATH = "/usr/bin/linux.uml";
/** Where it has the kernel's modules, in a folder for each release. */
export const MODULES_PATH = "/usr/lib/uml/modules";

/** What is to happen in a guest, with every default filled in. All paths are the host's; the guest has the same tree under the same paths. */
export interface VmPlan {
  /** A folder of this guest alone, which holds the files of {@link bootFiles}. */
  readonly home: string;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly modules: readonly string[];
  readonly memoryMiB: number;
  /** Folders below `/tmp` and `/run` that the guest sees all the same; it can only read them. */
  readonly readable: readonly string[];
  /** The folder it can write to. */
  readonly writable?: string;
}

/** A file that a guest boots from. */
export interface BootFile {
  readonly name: string;
  readonly text: string;
}

const INIT = "init";
const MODPROBE = "modprobe";
const STDOUT = "/dev/tty1";
const STDERR = "/dev/tty2";
const REPORT = "/dev/tty3";

/**
 * Write the files that a guest boots from: its first process, and the program that its kernel calls to load a module.
 *
 * Shape: the first process tells on the guest's third console how far it got, in the words of `parseNews`, and never ends: that would be a panic.
 * Edges: the host's tree is there, read-only; `/tmp`, `/run` and `/dev` are the guest's own.
 */
export function bootFiles(plan: VmPlan): readonly BootFile[] {
  const modprobe = `modprobe -d ${quoted(plan.home)}`;
  return [
    { name: INIT, text: initText(plan, modprobe) },
    { name: MODPROBE, text: `#!/bin/sh\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\nexec ${modprobe} "$@"\n` },
  ];
}

function initText(plan: VmPlan, modprobe: string): string {
  const { home, command, cwd, env, modules, readable, writable } = plan;
  // stdout is a terminal, but nobody looks at it.
  const plain = { TERM: "dumb", NO_COLOR: "1" };
  // Halves the start of a Node when one with the same modules has ended before.
  const own = {
    HOME: "/tmp",
    TMPDIR: "/tmp",
    NODE_COMPILE_CACHE: "/tmp/.node",
    MODPROBE_OPTIONS: `-d ${home}`,
    TURNOUT_VM_REPORT: REPORT,
  };
  const variables = Object.entries({ ...own, ...plain, ...env }).map(([name, value]) => quoted(`${name}=${value}`));
  const load = `${modprobe} -a ${modules.map(quoted).join(" ")} 2>/tmp/.modprobe`;
  return [
    "#!/bin/sh",
    // Consoles are terminals: as they come they would turn \n into \r\n.
    `for tty in ${STDOUT} ${STDERR} ${REPORT}; do stty -F $tty raw -echo; done`,
    `tell() { echo "$*" >${REPORT}; }`,
    "await_end() { while :; do sleep 1000; done; }",
    "set -e",
    "trap 'tell broken; await_end' EXIT",
    "mount -t proc proc /proc",
    "mount -t sysfs sysfs /sys",
    "mount -t tmpfs tmpfs /run",
    "mount -t tmpfs tmpfs /tmp",
    "mkdir -p /dev/shm /dev/pts",
    "mount -t tmpfs tmpfs /dev/shm",
    "mount -t devpts devpts /dev/pts",
    "ln -s /proc/self/fd /dev/fd",
    ...[home, ...readable].flatMap((folder) => mountLines(folder, "-r")),
    ...(writable === undefined ? [] : mountLines(writable, "-w")),
    `echo ${quoted(`${home}/${MODPROBE}`)} >/proc/sys/kernel/modprobe`,
    "ip link set lo up",
    // A failure has a line for each module, whose second word is a severity.
    ...(modules.length === 0 ? [] : [`${load} || { tell unloaded $(cat /tmp/.modprobe); await_end; }`]),
    "rm -f /tmp/.modprobe",
    `cd ${quoted(cwd)}`,
    "tell started",
    "code=0",
    // What the kernel doesn't know of its command line is in the first process's environment.
    `env -i ${variables.join(" ")} ${command.map(quoted).join(" ")} </dev/null >${STDOUT} 2>${STDERR} || code=$?`,
    // stty waits until what was printed has left the guest. Files of the host were written when they were closed.
    `for tty in ${STDOUT} ${STDERR}; do stty -F $tty raw -echo; done`,
    "tell exit $code",
    "await_end",
    "",
  ].join("\n");
}

/** Show a folder of the host under the same path; `access` is an option of mount. */
function mountLines(folder: string, access: "-r" | "-w"): readonly string[] {
  const path = quoted(folder);
  return [`mkdir -p ${path}`, `mount ${access} -t hostfs -o ${path} none ${path}`];
}

/**
 * The command line of the kernel.
 *
 * Shape: file descriptor 1 carries what the kernel and the first process print, 3 and 4 the program's stdout and stderr, 5 the news.
 */
export function kernelArguments({ home, memoryMiB }: Pick<VmPlan, "home" | "memoryMiB">): readonly string[] {
  const disk = ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", `init=${home}/${INIT}`];
  const consoles = ["con=null", "con0=null,fd:1", "con1=null,fd:3", "con2=null,fd:4", "con3=null,fd:5"];
  // Otherwise it leaves a folder in ~/.uml when it is killed.
  return [`mem=${memoryMiB}M`, ...disk, ...consoles, `uml_dir=${home}/`, "quiet"];
}

/**
 * What runs the kernel on the host, with `sh -c`: `$1` is the guest's home, the rest the kernel's command line.
 *
 * It ends everything and removes the home when the kernel ends, and also when stdin does: that happens however the process at its other end went.
 * The kernel makes itself a session, with a process group of its own; of the processes it consists of, some outlive the first one.
 * Edges: the half that waits for stdin does its work alone when the other one was killed. dash knows no `kill -KILL -- -1`.
 */
export const KEEPER = `
exec 9<&0
home=$1; shift
"$@" </dev/null 9<&- &
kernel=$!
finish() {
  kill -s KILL "$kernel"
  kill -s KILL -- "-$kernel"
  rm -rf -- "$home"
  kill -s KILL 0
}
(read -r _ <&9; finish) &
wait "$kernel"
finish
`;

/**
 * Find what a guest must be shown though its own `/tmp` and `/run` hide it: the top folder of each path that lies below one of them. Pure.
 * Edges: a folder ends with a slash; a file that lies there directly is not shown. Relative paths and other places give nothing.
 */
export function hiddenFolders(paths: readonly string[]): readonly string[] {
  const folders = paths.map((path) => /^\/(?:tmp|run)\/[^/]+(?=\/)/.exec(path)?.[0]);
  return [...new Set(folders.filter((folder) => folder !== undefined))];
}
