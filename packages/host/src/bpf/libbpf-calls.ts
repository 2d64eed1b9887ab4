/** An address in C: of something that libbpf made. */
export type Pointer = bigint;

/** Bytes that C reads or writes; undefined is NULL. */
export type Bytes = Uint8Array | undefined;

/** What libbpf's functions give: 0 or a file descriptor, or an error's number below 0. */
export type Result = number;

/** A function of C that may take long: on a thread of koffi's, without holding up the event loop. What is handed in must not be used meanwhile. */
export type OnThread<T extends readonly unknown[], R = Result> = (...args: T) => Promise<R>;

/** Objects: files of compiled programs. @source bpf/libbpf.h */
export interface ObjectCalls {
  /** E.g. `v1.1`. */
  version(): string;
  possibleCpus(): Result;
  /** Have libbpf's messages written, or with undefined nowhere. See print-capture.ts. */
  setPrint(print: Pointer | undefined): void;
  openObject(path: string): Pointer | undefined;
  loadObject: OnThread<[object: Pointer]>;
  closeObject(object: Pointer): void;
  nextProgram(object: Pointer, before: Pointer | undefined): Pointer | undefined;
  nextMap(object: Pointer, before: Pointer | undefined): Pointer | undefined;
  programName(program: Pointer): string;
  programFd(program: Pointer): Result;
  setAutoload(program: Pointer, isLoaded: boolean): Result;
  setVerifierLog(program: Pointer, log: Pointer, bytes: number): Result;
  setVerifierLogLevel(program: Pointer, level: number): Result;
  mapName(map: Pointer): string;
  mapFd(map: Pointer): Result;
  setMaxEntries(map: Pointer, entries: number): Result;
  reuseMapFd(map: Pointer, fd: number): Result;
  mapType(map: Pointer): number;
  mapKeySize(map: Pointer): number;
  mapValueSize(map: Pointer): number;
  mapFlags(map: Pointer): number;
  mapMaxEntries(map: Pointer): number;
}

/** Maps, and what all things of BPF share: pins, ids. @source bpf/bpf.h */
export interface MapCalls {
  getPinned(path: string): Result;
  pin(fd: number, path: string): Result;
  infoOf(fd: number, info: Uint8Array, length: Uint32Array): Result;
  mapById(id: number): Result;
  createMap(type: number, name: string, keySize: number, valueSize: number, maxEntries: number, options: Bytes): Result;
  lookup(fd: number, key: Uint8Array, value: Uint8Array): Result;
  update(fd: number, key: Uint8Array, value: Uint8Array, flags: number): Result;
  delete(fd: number, key: Uint8Array): Result;
  updateBatch: OnThread<[fd: number, keys: Uint8Array, values: Uint8Array, count: Uint32Array, options: Bytes]>;
  deleteBatch: OnThread<[fd: number, keys: Uint8Array, count: Uint32Array, options: Bytes]>;
  lookupBatch: OnThread<
    [fd: number, from: Bytes, to: Uint8Array, keys: Uint8Array, values: Uint8Array, count: Uint32Array, options: Bytes]
  >;
}

/** Programs and what they are attached to. @source bpf/bpf.h, bpf/libbpf.h */
export interface ProgramCalls {
  loadProgram(type: number, name: string, license: string, instructions: Uint8Array, count: number, options: Bytes): Result;
  testRun(fd: number, options: Uint8Array): Result;
  createLink(programFd: number, targetFd: number, attachType: number, options: Bytes): Result;
  updateLink(linkFd: number, programFd: number, options: Bytes): Result;
  detachLink(linkFd: number): Result;
  createTcHook(hook: Uint8Array): Result;
  attachTc(hook: Uint8Array, options: Uint8Array): Result;
  detachTc(hook: Uint8Array, options: Uint8Array): Result;
  queryTc(hook: Uint8Array, options: Uint8Array): Result;
}

/** What the kernel tells of its own functions and structs. @source bpf/btf.h */
export interface TypeCalls {
  kernelBtf(): Promise<Pointer | undefined>;
  moduleBtf(module: string, kernel: Pointer): Promise<Pointer | undefined>;
  findType: OnThread<[btf: Pointer, name: string, kind: number]>;
  freeBtf(btf: Pointer): void;
}

/** What is libc's, and koffi's own. */
export interface SystemCalls {
  fcntl(fd: number, command: number, value: number): number;
  /** Of the call just made, wheres result isn't the error: of `openObject` and `fcntl`. */
  errno(): number;
  /** Where bytes are. They stay there as long as they are reachable, and must be as long as C uses them. */
  addressOf(bytes: Uint8Array): Pointer;
  /** Make a function that C can call with (int, const char *, va_list), until the process ends. */
  printCallback(print: (level: number, format: Pointer, args: Pointer) => number): Pointer;
  vsnprintf(into: Uint8Array, length: number, format: Pointer, args: Pointer): number;
}

/** The functions of libbpf 1.0 and libc that this room calls: all there are, since a wrong declaration ends the process. */
export interface Libbpf extends ObjectCalls, MapCalls, ProgramCalls, TypeCalls, SystemCalls {}
