import { closeSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";

/** What host settings are read from and written to; tests pass their own. */
export interface HostFiles {
  /** Of the machine, also where this process may use fewer. */
  readonly cores: number;
  /** @throws an error of node:fs. */
  read(path: string): string;
  /** @throws an error of node:fs. */
  write(path: string, text: string): void;
  /** Try whether a file may be read, or a socket written to. @throws an error of node:fs, `ENXIO` for a socket that may be. */
  open(path: string): void;
}

/** The files of the host that this process runs on. */
export const hostFiles: HostFiles = {
  get cores(): number {
    return cpus().length;
  },
  read: (path) => readFileSync(path, "utf8").trim(),
  write: (path, text) => writeFileSync(path, text),
  open: (path) => closeSync(openSync(path, statSync(path).isSocket() ? "r+" : "r")),
};
