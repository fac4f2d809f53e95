#include "server/access/audit_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "server/conventions/log_text.h"

namespace optfarm::server {
namespace {

constexpr int kRefusalsASecond = 20;
constexpr size_t kMaxTextBytes = 300;

std::string Short(const std::string& text) {
  return ToUtf8(CutText(text, kMaxTextBytes));
}

}  // namespace

void AuditLog::Add(const storage::AuditRecord& record) {
  storage::AuditRecord kept = record;
  kept.subject = Short(record.subject);
  kept.message = Short(record.message);
  const absl::Status status = store_.Append(kept);
  if (!status.ok()) {
    LogError("keeping that ", kept.actor, " called ", kept.method, ": ",
             status.message());
  }
}

void AuditLog::AddRefusal(const storage::AuditRecord& record) {
  const absl::Time second =
      absl::FromUnixSeconds(absl::ToUnixSeconds(record.time));
  int uncounted = 0;
  bool keep = false;
  {
    absl::MutexLock lock(&mutex_);
    if (second != second_) {
      uncounted = refusals_ - kRefusalsASecond;
      second_ = second;
      refusals_ = 0;
    }
    keep = ++refusals_ <= kRefusalsASecond;
  }
  if (uncounted > 0) {
    storage::AuditRecord rest;
    rest.time = record.time;
    rest.outcome = record.outcome;
    rest.message = absl::StrCat(uncounted, " more calls were refused");
    Add(rest);
  }
  if (keep) Add(record);
}

}  // namespace optfarm::server
