/** Compiled BPF programs in base64, by the names of their files. The bundle puts them here; none where the site is made without clang. */
export const PROGRAMS: Readonly<Record<string, string>> = {};

/** Numbers of system errors on Linux, by their names. The bundle puts them here. */
export const ERRNO: Readonly<Record<string, number>> = {};
