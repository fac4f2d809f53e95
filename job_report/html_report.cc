#include "job_report/html_report.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/json_string.h"
#include "base/status_macros.h"
#include "job_report/html_parts.h"
#include "rpc/message_json.h"

namespace optfarm::job_report {
namespace {

// UNITS: bytes of all files, before they grow by a third as text.
constexpr int64_t kMostFileBytes = 900'000;
// UNITS: bytes of one log.
constexpr int64_t kMostLogBytes = 200'000;
// UNITS: layers of one list; what is tried in turn until the job fits.
constexpr int kMostLayers[] = {2000, 500, 100};

// Files in the order of their worth to a reader, each once.
class ShownFiles {
 public:
  explicit ShownFiles(const v1::Job& job) {
    AddData(job, v1::DataSource::SAMPLES);
    AddData(job, v1::DataSource::INPUT);
    for (const v1::Task& task : job.tasks()) AddLogs(task.artifacts());
    AddLogs(job.artifacts());
  }

  const std::vector<v1::Digest>& files() const { return files_; }
  bool Has(const v1::Digest& digest) const {
    return names_.count(digest.sha256()) > 0;
  }

 private:
  void Add(const v1::Digest& digest) {
    if (digest.sha256().empty() || digest.size_bytes() < 0) return;
    if (names_.insert(digest.sha256()).second) files_.push_back(digest);
  }

  void AddData(const v1::Job& job, v1::DataSource::Role role) {
    std::set<std::string> samples;
    for (const auto& sample : job.report().worst_samples()) {
      samples.insert(sample.sample());
    }
    for (const v1::DataSource& source : job.spec().calibration().sources()) {
      if (source.role() != role) continue;
      for (const v1::DataFile& file : source.files()) {
        if (samples.count(file.path()) > 0) Add(file.digest());
      }
    }
  }

  void AddLogs(
      const google::protobuf::RepeatedPtrField<v1::Artifact>& artifacts) {
    for (const v1::Artifact& artifact : artifacts) {
      if (absl::EndsWith(artifact.name(), ".log") &&
          artifact.digest().size_bytes() <= kMostLogBytes) {
        Add(artifact.digest());
      }
    }
  }

  std::vector<v1::Digest> files_;
  std::set<std::string> names_;
};

// Leaves out all of the data's files but those that are shown.
void TrimData(const ShownFiles& shown, v1::Dataset& data) {
  for (v1::DataSource& source : *data.mutable_sources()) {
    auto& files = *source.mutable_files();
    files.erase(std::remove_if(files.begin(), files.end(),
                               [&shown](const v1::DataFile& file) {
                                 return !shown.Has(file.digest());
                               }),
                files.end());
  }
}

// Leaves out what a report does not show.
void Trim(const ShownFiles& shown, v1::Job& job) {
  for (v1::Measurement& one : *job.mutable_measurements()) {
    one.clear_samples_us();
  }
  if (job.report().has_calibration()) {
    job.mutable_report()->mutable_calibration()->clear_observed();
  }
  if (job.spec().has_calibration()) {
    TrimData(shown, *job.mutable_spec()->mutable_calibration());
  }
}

template <typename List>
void Shorten(int most, List& list) {
  if (list.size() > most) list.DeleteSubrange(most, list.size() - most);
}

// Nothing in it can end the element that it stands in.
std::string Guarded(const std::string& json) {
  return absl::StrReplaceAll(json, {{"<", "\\u003c"}});
}

// The job in at most `room` bytes.
absl::StatusOr<std::string> JobJson(size_t room, v1::Job& job) {
  size_t size = 0;
  for (const int layers : kMostLayers) {
    if (job.has_report()) {
      Shorten(layers, *job.mutable_report()->mutable_layers_compared());
      Shorten(layers, *job.mutable_report()->mutable_sensitivity());
    }
    OPTFARM_ASSIGN_OR_RETURN(std::string json,
                             rpc::MessageToJson(job, rpc::JsonLines::kOne));
    json = Guarded(json);
    if (json.size() <= room) return json;
    size = json.size();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the report would have ", kMostHtmlBytes - room + size, " bytes, and ",
      kMostHtmlBytes,
      " are the most; report.json among the job's files has it all"));
}

}  // namespace

absl::StatusOr<std::string> HtmlReport(v1::Job job, ReadFileFn read) {
  const HtmlParts parts = ReportHtmlParts();
  if (parts.head.empty()) {
    return absl::UnimplementedError(
        "this program was built without the web page, of which HTML reports "
        "are made (OPTFARM_WEB)");
  }
  constexpr absl::string_view kJob = "{\"job\":", kFiles = ",\"files\":{",
                              kEnd = "}}";
  const size_t frame = parts.head.size() + parts.tail.size() + kJob.size() +
                       kFiles.size() + kEnd.size();
  const ShownFiles shown(job);
  Trim(shown, job);
  OPTFARM_ASSIGN_OR_RETURN(const std::string json,
                           JobJson(kMostHtmlBytes - frame, job));
  size_t room = kMostHtmlBytes - frame - json.size();
  int64_t files_room = kMostFileBytes;
  std::string files;
  for (const v1::Digest& digest : shown.files()) {
    if (digest.size_bytes() > files_room) continue;
    // What has been evicted, or may not be seen, is left out.
    const absl::StatusOr<std::string> bytes = read(digest);
    if (!bytes.ok()) continue;
    const std::string entry = Guarded(
        absl::StrCat(files.empty() ? "" : ",", JsonString(digest.sha256()), ":",
                     JsonString(absl::Base64Escape(*bytes))));
    if (entry.size() > room) continue;
    room -= entry.size();
    files_room -= static_cast<int64_t>(bytes->size());
    files.append(entry);
  }
  return absl::StrCat(parts.head, kJob, json, kFiles, files, kEnd, parts.tail);
}

}  // namespace optfarm::job_report
