// One-line log messages to stderr: "2026-01-31T12:00:00.123Z I server: text".
// Secrets never go in here; callers log names and digests, not contents.

#ifndef OPTFARM_BASE_LOG_H_
#define OPTFARM_BASE_LOG_H_

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace optfarm {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Sets the program's name, printed in each line, and the lowest level shown.
// The default is no name and kInfo.
// THREADS: call once, before other threads log.
void SetUpLog(absl::string_view program, LogLevel lowest);

// Writes one line. Newlines inside `text` become spaces and other control
// characters "\x1b" and the like, so that what a client sends can neither begin
// a line nor command a terminal.
// THREADS: safe; lines do not interleave.
void LogLine(LogLevel level, absl::string_view text);

template <typename... Args>
void LogDebug(const Args&... args) {
  LogLine(LogLevel::kDebug, absl::StrCat(args...));
}
template <typename... Args>
void LogInfo(const Args&... args) {
  LogLine(LogLevel::kInfo, absl::StrCat(args...));
}
template <typename... Args>
void LogWarning(const Args&... args) {
  LogLine(LogLevel::kWarning, absl::StrCat(args...));
}
template <typename... Args>
void LogError(const Args&... args) {
  LogLine(LogLevel::kError, absl::StrCat(args...));
}

}  // namespace optfarm

#endif  // OPTFARM_BASE_LOG_H_
