#include "server/delivery/webhooks.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/hmac.h"
#include "base/json_string.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "http/json.h"
#include "server/delivery/job_view.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::server {
namespace {

constexpr absl::Duration kFirstPause = absl::Seconds(10);
constexpr absl::Duration kLongestPause = absl::Hours(1);
// About a day with the pauses above.
constexpr int kMaxFailures = 30;
constexpr absl::Duration kRemembered = absl::Hours(24 * 30);
constexpr absl::Duration kSendLimit = absl::Seconds(10);
// That send at once.
constexpr int kSenders = 4;
// The receiver says that it wants nothing more.
constexpr int kGone = 410;

absl::Duration Pause(int failures) {
  absl::Duration pause = kFirstPause;
  for (int i = 1; i < failures && pause < kLongestPause; ++i) pause *= 2;
  return std::min(pause, kLongestPause);
}

// Whom a message goes to.
std::string ReceiverOf(const storage::WebhookRecord& record) {
  const absl::StatusOr<http::Url> url = http::ParseUrl(record.url);
  return url.ok() ? url->Authority() : record.url;
}

// A CloudEvent whose data is the job as lists show it.
absl::StatusOr<std::string> MessageOf(const storage::StoredJob& stored) {
  v1::Job job = ToProto(stored);
  job.mutable_spec()->clear_calibration();
  OPTFARM_ASSIGN_OR_RETURN(const std::string data, http::ToJson(job));
  return absl::StrCat(
      R"({"specversion":"1.0","type":"optfarm.job.ended","source":"optfarm",)",
      "\"id\":", JsonString(job.job_id()), ",\"time\":",
      JsonString(absl::FormatTime(absl::RFC3339_full, stored.job.end_time,
                                  absl::UTCTimeZone())),
      R"(,"datacontenttype":"application/json","data":)", data, "}");
}

}  // namespace

Webhooks::Webhooks(WebhookOptions options, storage::WebhookStore& webhooks,
                   storage::MetadataStore& store, Clock& clock)
    : options_(std::move(options)),
      webhooks_(webhooks),
      store_(store),
      clock_(clock),
      ticker_(clock, [this](absl::Time now) { return Step(now); }) {}

absl::Status Webhooks::Start() {
  const absl::Time now = clock_.Now();
  OPTFARM_RETURN_IF_ERROR(webhooks_.Forget(now - kRemembered));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<storage::WebhookRecord> open,
                           webhooks_.ListOpen());
  {
    absl::MutexLock lock(&mutex_);
    for (storage::WebhookRecord& record : open) {
      due_[record.job_id] = record.next_time;
      open_[record.job_id] = std::move(record);
    }
  }
  for (int i = 0; i < kSenders; ++i) {
    senders_.emplace_back([this] { SendAll(); });
  }
  ticker_.Start();
  return absl::OkStatus();
}

void Webhooks::Stop() {
  ticker_.Stop();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  cancellation_->Cancel();
  for (std::thread& sender : senders_) sender.join();
  senders_.clear();
}

absl::Status Webhooks::Check(const std::string& url) const {
  OPTFARM_ASSIGN_OR_RETURN(const http::Url parsed, http::ParseUrl(url));
  if (absl::c_linear_search(options_.allowed, parsed.host) ||
      absl::c_linear_search(options_.allowed, parsed.Authority())) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("this server sends nothing to ", parsed.Authority(),
                   "; its operator has to allow it with --webhook_allow"));
}

absl::Status Webhooks::Expect(const std::string& job_id,
                              const std::string& url) {
  storage::WebhookRecord record;
  record.job_id = job_id;
  record.url = url;
  OPTFARM_RETURN_IF_ERROR(webhooks_.Add(record, clock_.Now()));
  {
    absl::MutexLock lock(&mutex_);
    if (open_.emplace(job_id, std::move(record)).second) {
      due_[job_id] = absl::InfinitePast();
    }
  }
  ticker_.Wake();
  return absl::OkStatus();
}

void Webhooks::Notify(const std::vector<std::string>& job_ids) {
  bool news = false;
  {
    absl::MutexLock lock(&mutex_);
    for (const std::string& job_id : job_ids) {
      const auto found = open_.find(job_id);
      if (found == open_.end()) continue;
      due_[job_id] = found->second.next_time;
      news = true;
    }
  }
  if (news) ticker_.Wake();
}

absl::Time Webhooks::Step(absl::Time now) {
  absl::Time next = absl::InfiniteFuture();
  absl::MutexLock lock(&mutex_);
  for (auto entry = due_.begin(); entry != due_.end();) {
    // Who has it in hand wakes us when it is done.
    const bool in_hand = in_hand_.contains(entry->first);
    if (entry->second > now || in_hand) {
      if (!in_hand) next = std::min(next, entry->second);
      ++entry;
      continue;
    }
    const storage::WebhookRecord& record = open_[entry->first];
    queues_[ReceiverOf(record)].push_back(record);
    in_hand_.insert(entry->first);
    entry = due_.erase(entry);
  }
  return next;
}

bool Webhooks::TakeNext(std::string& receiver, storage::WebhookRecord& record) {
  absl::MutexLock lock(&mutex_);
  auto found = queues_.end();
  const auto something = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (stopping_) return true;
    // Beginning after the last one, and around.
    auto next = queues_.upper_bound(last_receiver_);
    for (size_t i = 0; i < queues_.size(); ++i, ++next) {
      if (next == queues_.end()) next = queues_.begin();
      if (busy_.contains(next->first)) continue;
      found = next;
      return true;
    }
    return false;
  };
  mutex_.Await(absl::Condition(&something));
  if (stopping_) return false;
  receiver = last_receiver_ = found->first;
  record = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) queues_.erase(found);
  busy_.insert(receiver);
  return true;
}

void Webhooks::SendAll() {
  std::string receiver;
  storage::WebhookRecord record;
  while (TakeNext(receiver, record)) {
    const std::string job_id = record.job_id;
    Serve(std::move(record), clock_.Now());
    {
      absl::MutexLock lock(&mutex_);
      busy_.erase(receiver);
      in_hand_.erase(job_id);
    }
    ticker_.Wake();
  }
}

void Webhooks::Serve(storage::WebhookRecord record, absl::Time now) {
  const absl::StatusOr<storage::StoredJob> job = store_.GetJob(record.job_id);
  if (absl::IsNotFound(job.status())) {
    return Close(record, "the job is gone", now);
  }
  absl::Status status = job.status();
  if (job.ok()) {
    // Whoever changes it next says so.
    if (!HasEnded(job->job.state)) return;
    status = Deliver(record, *job, now);
    if (status.ok()) return Close(record, "delivered", now);
  }
  // It stays open on disk, and counts for nothing.
  if (cancellation_->cancelled()) return;
  ++record.failures;
  if (record.failures >= kMaxFailures || absl::IsPermissionDenied(status)) {
    LogWarning("the end of job ", record.job_id, " could not be told to ",
               record.url, ": ", status.ToString(), "; giving up");
    return Close(record, "given up", now);
  }
  record.next_time = now + Pause(record.failures);
  LogWarning("telling the end of job ", record.job_id, " to ", record.url,
             " failed: ", status.ToString(), "; next try in ",
             absl::FormatDuration(record.next_time - now));
  const absl::Status kept = webhooks_.Postpone(record, status.ToString());
  if (!kept.ok()) LogWarning("keeping a webhook: ", kept.ToString());
  absl::MutexLock lock(&mutex_);
  due_[record.job_id] = record.next_time;
  open_[record.job_id] = std::move(record);
}

absl::Status Webhooks::Deliver(const storage::WebhookRecord& record,
                               const storage::StoredJob& job, absl::Time now) {
  // The operator may have changed their mind since.
  OPTFARM_RETURN_IF_ERROR(Check(record.url));
  http::PostRequest request;
  OPTFARM_ASSIGN_OR_RETURN(request.url, http::ParseUrl(record.url));
  OPTFARM_ASSIGN_OR_RETURN(request.body, MessageOf(job));
  request.content_type = "application/cloudevents+json";
  request.limit = kSendLimit;
  request.cancellation = cancellation_;
  const std::string timestamp = absl::StrCat(absl::ToUnixSeconds(now));
  request.headers = {
      {"Optfarm-Timestamp", timestamp},
      {"Optfarm-Signature",
       absl::StrCat(
           "v1=", HmacSha256Hex(options_.secret,
                                absl::StrCat(timestamp, ".", request.body)))}};
  OPTFARM_ASSIGN_OR_RETURN(const int status, options_.post(request));
  if (status >= 200 && status < 300) return absl::OkStatus();
  if (status == kGone) {
    return absl::PermissionDeniedError("the receiver answered 410 Gone");
  }
  return absl::UnavailableError(
      absl::StrCat("the receiver answered with status ", status));
}

void Webhooks::Close(const storage::WebhookRecord& record,
                     absl::string_view outcome, absl::Time now) {
  const absl::Status kept = webhooks_.Close(record.job_id, outcome, now);
  // It stays open on disk then, and is told once more after a restart.
  if (!kept.ok()) LogWarning("closing a webhook: ", kept.ToString());
  absl::MutexLock lock(&mutex_);
  open_.erase(record.job_id);
  due_.erase(record.job_id);
}

}  // namespace optfarm::server
