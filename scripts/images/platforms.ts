/** The machines that images are built for, by the names that OCI and Debian share. */
export type Arch = "amd64" | "arm64";

/** What is named in another way on each machine. */
export interface Platform {
  readonly arch: Arch;
  /** Debian's name of the folder of libraries. */
  readonly triplet: string;
  /** As `process.arch`: npm's name. */
  readonly npmCpu: "x64" | "arm64";
  /** `e_machine` in the header of its ELF files. */
  readonly elfMachine: number;
}

/** All of them, by name. @source elf.h EM_X86_64, EM_AARCH64 */
export const PLATFORMS: Readonly<Record<Arch, Platform>> = {
  amd64: { arch: "amd64", triplet: "x86_64-linux-gnu", npmCpu: "x64", elfMachine: 62 },
  arm64: { arch: "arm64", triplet: "aarch64-linux-gnu", npmCpu: "arm64", elfMachine: 183 },
};
