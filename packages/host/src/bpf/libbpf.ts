import { endianness } from "node:os";
import { ProxyError } from "@turnout/core";
import { loadLibc } from "../netlink/libc.ts";
import type { Koffi, Library } from "../netlink/libc.ts";
import type { Libbpf, MapCalls, ObjectCalls, OnThread, Pointer, ProgramCalls, SystemCalls, TypeCalls } from "./libbpf-calls.ts";

/** libbpf's own name for itself: 1.0 and later. Found where the system's linker looks. */
const LIBRARY = "libbpf.so.1";
let loaded: Libbpf | undefined;

/**
 * Load libbpf, once for the process.
 *
 * Edges: its messages on stderr are turned off; {@link capturePrint} has them.
 * @throws {ProxyError} `tool_missing` without libbpf; `host_unsupported` where koffi has no build for this machine, or it is a big-endian one.
 */
export function loadLibbpf(): Libbpf {
  if (loaded !== undefined) return loaded;
  if (endianness() !== "LE") throw new ProxyError("host_unsupported", "eBPF needs a little-endian machine here");
  const { koffi, libc } = loadLibc();
  const declared = declare(koffi, openLibbpf(koffi), libc);
  declared.setPrint(undefined);
  loaded = declared;
  return declared;
}

function openLibbpf(koffi: Koffi): Library {
  try {
    return koffi.load(LIBRARY);
  } catch (error) {
    throw new ProxyError("tool_missing", `${LIBRARY} could not be loaded`, {
      hint: "install it: apt-get install libbpf1 (Debian 12, Ubuntu 22.10 or later)",
      cause: error,
    });
  }
}

function onThread<T extends readonly unknown[], R = number>(call: { readonly async: (...args: never[]) => unknown }): OnThread<T, R> {
  return (...args) =>
    new Promise((resolve, reject) => {
      const done = (error: Error | null, result: R): void => {
        if (error === null) resolve(result);
        else reject(error);
      };
      (call.async as (...all: unknown[]) => unknown)(...args, done);
    });
}

/** NULL is undefined. */
function orNone(found: Pointer | null): Pointer | undefined {
  return found === null || found === 0n ? undefined : found;
}

function declare(koffi: Koffi, bpf: Library, libc: Library): Libbpf {
  return { ...objects(bpf), ...maps(bpf), ...programs(bpf), ...types(bpf), ...c(koffi, libc) };
}

function objects(bpf: Library): ObjectCalls {
  const setPrint = bpf.func("void *libbpf_set_print(void *print)");
  const nextProgram = bpf.func("void *bpf_object__next_program(const void *object, void *before)");
  const nextMap = bpf.func("void *bpf_object__next_map(const void *object, const void *before)");
  const openObject = bpf.func("void *bpf_object__open_file(const char *path, const void *options)");
  return {
    version: bpf.func("const char *libbpf_version_string()"),
    possibleCpus: bpf.func("int libbpf_num_possible_cpus()"),
    setPrint: (print): void => void setPrint(print ?? null),
    openObject: (path) => orNone(openObject(path, null) as Pointer | null),
    loadObject: onThread(bpf.func("int bpf_object__load(void *object)")),
    closeObject: bpf.func("void bpf_object__close(void *object)"),
    nextProgram: (object, before) => orNone(nextProgram(object, before) as Pointer | null),
    nextMap: (object, before) => orNone(nextMap(object, before) as Pointer | null),
    programName: bpf.func("const char *bpf_program__name(const void *program)"),
    programFd: bpf.func("int bpf_program__fd(const void *program)"),
    setAutoload: bpf.func("int bpf_program__set_autoload(void *program, bool isLoaded)"),
    setVerifierLog: bpf.func("int bpf_program__set_log_buf(void *program, void *log, size_t bytes)"),
    setVerifierLogLevel: bpf.func("int bpf_program__set_log_level(void *program, uint32_t level)"),
    mapName: bpf.func("const char *bpf_map__name(const void *map)"),
    mapFd: bpf.func("int bpf_map__fd(const void *map)"),
    setMaxEntries: bpf.func("int bpf_map__set_max_entries(void *map, uint32_t entries)"),
    reuseMapFd: bpf.func("int bpf_map__reuse_fd(void *map, int fd)"),
    mapType: bpf.func("int bpf_map__type(const void *map)"),
    mapKeySize: bpf.func("uint32_t bpf_map__key_size(const void *map)"),
    mapValueSize: bpf.func("uint32_t bpf_map__value_size(const void *map)"),
    mapFlags: bpf.func("uint32_t bpf_map__map_flags(const void *map)"),
    mapMaxEntries: bpf.func("uint32_t bpf_map__max_entries(const void *map)"),
  };
}

function maps(bpf: Library): MapCalls {
  return {
    getPinned: bpf.func("int bpf_obj_get(const char *path)"),
    pin: bpf.func("int bpf_obj_pin(int fd, const char *path)"),
    infoOf: bpf.func("int bpf_obj_get_info_by_fd(int fd, void *info, void *length)"),
    mapById: bpf.func("int bpf_map_get_fd_by_id(uint32_t id)"),
    createMap: bpf.func(
      "int bpf_map_create(int type, const char *name, uint32_t keySize, uint32_t valueSize, uint32_t maxEntries, const void *options)",
    ),
    lookup: bpf.func("int bpf_map_lookup_elem(int fd, const void *key, void *value)"),
    update: bpf.func("int bpf_map_update_elem(int fd, const void *key, const void *value, uint64_t flags)"),
    delete: bpf.func("int bpf_map_delete_elem(int fd, const void *key)"),
    updateBatch: onThread(
      bpf.func("int bpf_map_update_batch(int fd, const void *keys, const void *values, void *count, const void *options)"),
    ),
    deleteBatch: onThread(bpf.func("int bpf_map_delete_batch(int fd, const void *keys, void *count, const void *options)")),
    lookupBatch: onThread(
      bpf.func("int bpf_map_lookup_batch(int fd, void *from, void *to, void *keys, void *values, void *count, const void *options)"),
    ),
  };
}

function programs(bpf: Library): ProgramCalls {
  return {
    loadProgram: bpf.func(
      "int bpf_prog_load(int type, const char *name, const char *license, const void *instructions, size_t count, const void *options)",
    ),
    testRun: bpf.func("int bpf_prog_test_run_opts(int fd, void *options)"),
    createLink: bpf.func("int bpf_link_create(int programFd, int targetFd, int attachType, const void *options)"),
    updateLink: bpf.func("int bpf_link_update(int linkFd, int programFd, const void *options)"),
    detachLink: bpf.func("int bpf_link_detach(int linkFd)"),
    createTcHook: bpf.func("int bpf_tc_hook_create(void *hook)"),
    attachTc: bpf.func("int bpf_tc_attach(const void *hook, void *options)"),
    detachTc: bpf.func("int bpf_tc_detach(const void *hook, const void *options)"),
    queryTc: bpf.func("int bpf_tc_query(const void *hook, void *options)"),
  };
}

function types(bpf: Library): TypeCalls {
  const kernelBtf = onThread<[], Pointer | null>(bpf.func("void *btf__load_vmlinux_btf()"));
  const moduleBtf = onThread<[string, Pointer], Pointer | null>(bpf.func("void *btf__load_module_btf(const char *module, void *kernel)"));
  return {
    kernelBtf: async () => orNone(await kernelBtf()),
    moduleBtf: async (module, kernel) => orNone(await moduleBtf(module, kernel)),
    findType: onThread(bpf.func("int btf__find_by_name_kind(const void *btf, const char *name, uint32_t kind)")),
    freeBtf: bpf.func("void btf__free(void *btf)"),
  };
}

function c(koffi: Koffi, libc: Library): SystemCalls {
  return {
    fcntl: libc.func("int fcntl(int fd, int command, long value)"),
    vsnprintf: libc.func("int vsnprintf(void *into, size_t length, void *format, void *args)"),
    errno: () => koffi.errno(),
    addressOf: (bytes) => koffi.address(bytes),
    // On x64 and arm64 a va_list that is handed on is a pointer, to the caller's own or to a copy.
    printCallback: (print) =>
      koffi.address(koffi.register(print, koffi.pointer(koffi.proto("int TurnoutPrint(int level, void *format, void *args)")))),
  };
}
