/** Numbers of system errors on Linux, by their names. The bundle puts them here. */
export const ERRNO: Readonly<Record<string, number>> = {};
