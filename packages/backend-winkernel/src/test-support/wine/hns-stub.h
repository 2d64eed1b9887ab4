// What the two libraries of the stub share, and what tests ask it. Strict where Windows would crash: it counts instead.
#ifndef TURNOUT_HNS_STUB_H
#define TURNOUT_HNS_STUB_H
#include <windows.h>

// A text that the caller has to free by CoTaskMemFree, and that is counted until then.
PWSTR StubText(const wchar_t *text);
// Write a line to the journal.
void StubNote(const char *function, const wchar_t *detail);
// Have the next call of a function fail.
void StubFail(PCWSTR function, HRESULT result);
// Have the next call of a function take its time.
void StubDelay(PCWSTR function, DWORD ms);
// Handles that are open; texts that weren't freed; calls with a handle that isn't open, or is of another kind.
int StubOpenHandles(void);
int StubTexts(void);
int StubBadHandles(void);
#endif
