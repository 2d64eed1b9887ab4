import { readdir, readFile, readlink } from "node:fs/promises";

/** The files that a survey reads; everything is undefined or empty where it isn't there, or may not be read. */
export interface SurveyFiles {
  read(path: string): Promise<string | undefined>;
  list(path: string): Promise<readonly string[]>;
  /** Where a link leads, e.g. `net:[4026531840]`. */
  link(path: string): Promise<string | undefined>;
}

/** This machine's files. */
export const hostSurveyFiles: SurveyFiles = {
  read: (path) => tried(() => readFile(path, "utf8"), undefined),
  list: (path) => tried(() => readdir(path), []),
  link: (path) => tried(() => readlink(path), undefined),
};

async function tried<T, O>(work: () => Promise<T>, otherwise: O): Promise<T | O> {
  try {
    return await work();
  } catch (error) {
    // What can't be read is told as not seen, whatever the reason: a process that ended, a module that isn't loaded, no right.
    if (error instanceof Error && "code" in error) return otherwise;
    throw error;
  }
}
