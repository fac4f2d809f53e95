#include "client_cli/jobs/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/human_units.h"
#include "client_cli/command/command.h"

namespace optfarm::client_cli {
namespace {

// UNITS: character positions.
size_t TerminalWidth() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10) {
    return size.ws_col;
  }
  return 80;
}

}  // namespace

ProgressLine::ProgressLine(const CommandContext& context)
    : out_(context.err),
      enabled_(context.err_is_terminal),
      clock_(context.clock),
      last_(absl::InfinitePast()) {}

ProgressLine::~ProgressLine() { Wipe(); }

void ProgressLine::Show(absl::string_view text) {
  if (!enabled_) return;
  absl::MutexLock lock(&mutex_);
  const absl::Time now = clock_->Now();
  if (now - last_ < absl::Milliseconds(100)) return;
  last_ = now;
  std::string line = PrintableLine(text).substr(0, TerminalWidth() - 1);
  const size_t length = line.size();
  // Blanks instead of an escape sequence: terminals without them exist.
  if (length < drawn_) line.append(drawn_ - length, ' ');
  *out_ << "\r" << line << std::flush;
  drawn_ = length;
}

void ProgressLine::Remark(absl::string_view text) {
  absl::MutexLock lock(&mutex_);
  WipeLocked();
  *out_ << text << "\n" << std::flush;
}

void ProgressLine::Wipe() {
  absl::MutexLock lock(&mutex_);
  WipeLocked();
}

void ProgressLine::WipeLocked() {
  if (drawn_ == 0) return;
  *out_ << "\r" << std::string(drawn_, ' ') << "\r" << std::flush;
  drawn_ = 0;
  last_ = absl::InfinitePast();
}

std::function<void(int64_t done, int64_t total)> ProgressLine::Bytes(
    std::string what) {
  return [this, what = std::move(what)](int64_t done, int64_t total) {
    Show(absl::StrCat(what, ": ", HumanBytes(done), " of ", HumanBytes(total)));
  };
}

}  // namespace optfarm::client_cli
