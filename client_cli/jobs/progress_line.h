// One line on a terminal that says how it goes and is drawn over again. Draws
// nothing where nobody watches.

#ifndef OPTFARM_CLIENT_CLI_JOBS_PROGRESS_LINE_H_
#define OPTFARM_CLIENT_CLI_JOBS_PROGRESS_LINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace optfarm::client_cli {

struct CommandContext;

// THREADS: all methods may be called from any thread. OWNERSHIP: the context
// must outlive the line; the destructor wipes what is drawn.
class ProgressLine {
 public:
  explicit ProgressLine(const CommandContext& context);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows `text`, cut to the terminal's width. Redrawn at most ten times a
  // second.
  void Show(absl::string_view text);
  // Prints a whole line above the progress line, on a terminal or not.
  void Remark(absl::string_view text);
  void Wipe();

  // For transfers: "`what`: 1.2 MB of 3.4 MB".
  std::function<void(int64_t done, int64_t total)> Bytes(std::string what);

 private:
  void WipeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::ostream* const out_;
  const bool enabled_;
  Clock* const clock_;
  absl::Mutex mutex_;
  size_t drawn_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_PROGRESS_LINE_H_
