#include "server/services/report_page.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/json_string.h"
#include "base/status_macros.h"
#include "http/json.h"
#include "http/url_text.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/models.pb.h"
#include "server/services/web_page.h"

namespace optfarm::server {
namespace {

constexpr char kFolder[] = "/report/";
constexpr char kGetJob[] = "/optfarm.v1.JobService/GetJob";
constexpr char kReportDownload[] = "/optfarm.v1.ModelService/Download";
constexpr absl::Duration kCallTime = absl::Seconds(30);

// UNITS: bytes of a report. A mail takes it.
constexpr size_t kMostReport = 2'000'000;
// UNITS: bytes of pictures and labels, before they grow by a third as text.
constexpr int64_t kMostFiles = 900'000;
// UNITS: layers of one list.
constexpr int kMostLayers = 2000;

absl::StatusOr<v1::Job> GetJob(http::Backend& backend,
                               const http::RequestHead& head,
                               const std::string& job_id) {
  OPTFARM_ASSIGN_OR_RETURN(http::BackendCall call, CallAs(head, kGetJob));
  call.limit = kCallTime;
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  OPTFARM_ASSIGN_OR_RETURN(const std::string answer,
                           backend.Unary(call, request.SerializeAsString()));
  v1::Job job;
  if (!job.ParseFromString(answer)) {
    return absl::InternalError("the job's answer cannot be read");
  }
  return job;
}

absl::StatusOr<std::string> Download(http::Backend& backend,
                                     const http::RequestHead& head,
                                     const v1::Digest& digest) {
  OPTFARM_ASSIGN_OR_RETURN(http::BackendCall call,
                           CallAs(head, kReportDownload));
  call.limit = kCallTime;
  v1::DownloadRequest request;
  *request.mutable_digest() = digest;
  const auto stream = backend.Open(call);
  std::string bytes, message;
  const bool sent = stream->Write(request.SerializeAsString());
  stream->WritesDone();
  using ReadResult = http::BackendStream::ReadResult;
  while (sent && stream->Read(absl::InfiniteDuration(), &message) ==
                     ReadResult::kMessage) {
    v1::DownloadResponse part;
    if (!part.ParseFromString(message)) {
      return absl::InternalError("a download's answer cannot be read");
    }
    bytes.append(part.data());
    if (static_cast<int64_t>(bytes.size()) > kMostFiles) break;
  }
  OPTFARM_RETURN_IF_ERROR(stream->Finish());
  return bytes;
}

// The files that a report shows: pictures of samples, and the labels, in which
// the names of classes may stand.
std::map<std::string, v1::Digest> FilesShown(const v1::Job& job) {
  std::set<std::string> samples;
  for (const auto& sample : job.report().worst_samples()) {
    samples.insert(sample.sample());
  }
  std::map<std::string, v1::Digest> files;
  int64_t room = kMostFiles;
  for (const v1::DataSource& source : job.spec().calibration().sources()) {
    for (const v1::DataFile& file : source.files()) {
      const bool shown = source.role() == v1::DataSource::LABELS ||
                         samples.count(file.path()) > 0;
      const int64_t size = file.digest().size_bytes();
      if (!shown || size > room || size < 0) continue;
      room -= size;
      files[file.digest().sha256()] = file.digest();
    }
  }
  return files;
}

// Leaves out what a report does not show: of the samples' files, all but those
// that are shown and one of each folder, whose names may be those of classes.
void Trim(const std::map<std::string, v1::Digest>& shown, v1::Job& job) {
  for (v1::Measurement& one : *job.mutable_measurements()) {
    one.clear_samples_us();
  }
  if (job.has_report()) {
    v1::Report& report = *job.mutable_report();
    if (report.has_calibration()) {
      report.mutable_calibration()->clear_observed();
    }
    auto& layers = *report.mutable_layers_compared();
    if (layers.size() > kMostLayers) {
      layers.DeleteSubrange(kMostLayers, layers.size() - kMostLayers);
    }
  }
  if (!job.spec().has_calibration()) return;
  for (v1::DataSource& source :
       *job.mutable_spec()->mutable_calibration()->mutable_sources()) {
    std::set<std::string> folders;
    auto& files = *source.mutable_files();
    int kept = 0;
    for (int i = 0; i < files.size(); ++i) {
      const std::string& path = files.Get(i).path();
      const bool first = folders.insert(path.substr(0, path.find('/'))).second;
      if (!first && shown.count(files.Get(i).digest().sha256()) == 0) continue;
      files.SwapElements(kept++, i);
    }
    files.DeleteSubrange(kept, files.size() - kept);
  }
}

absl::StatusOr<std::string> MakeReport(http::Backend& backend,
                                       const http::RequestHead& head) {
  const WebReport parts = WebReportParts();
  if (parts.head.empty()) {
    return absl::NotFoundError("this server was built without the web page");
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string job_id,
      http::PercentDecode(
          absl::string_view(head.path).substr(sizeof(kFolder) - 1), false));
  OPTFARM_ASSIGN_OR_RETURN(v1::Job job, GetJob(backend, head, job_id));
  const std::map<std::string, v1::Digest> shown = FilesShown(job);
  Trim(shown, job);
  OPTFARM_ASSIGN_OR_RETURN(std::string json, http::ToJson(job));
  json = absl::StrCat("{\"job\":", json, ",\"files\":{");
  bool first = true;
  for (const auto& [sha256, digest] : shown) {
    // What has been evicted, or may not be seen, is left out.
    const absl::StatusOr<std::string> bytes = Download(backend, head, digest);
    if (!bytes.ok()) continue;
    absl::StrAppend(&json, first ? "" : ",", JsonString(sha256), ":",
                    JsonString(absl::Base64Escape(*bytes)));
    first = false;
  }
  absl::StrAppend(&json, "}}");
  // Nothing in it can end the element that it stands in.
  json = absl::StrReplaceAll(json, {{"<", "\\u003c"}});
  const size_t size = parts.head.size() + json.size() + parts.tail.size();
  if (size > kMostReport) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the report would have ", size, " bytes, and ", kMostReport,
        " are the most; report.json among the job's files has it all"));
  }
  return absl::StrCat(parts.head, json, parts.tail);
}

http::Reply Answer(http::Backend& backend, const http::RequestHead& head) {
  absl::StatusOr<std::string> report = MakeReport(backend, head);
  if (!report.ok()) return http::Problem(report.status());
  http::Reply reply;
  reply.content_type = "text/html; charset=utf-8";
  reply.body = *std::move(report);
  reply.headers = {
      {"Content-Security-Policy",
       absl::StrCat(WebReportParts().policy,
                    "; frame-ancestors 'none'; base-uri 'none'; "
                    "form-action 'none'")},
      {"Referrer-Policy", "no-referrer"},
      {"Cache-Control", "no-store"},
  };
  return reply;
}

}  // namespace

void AddReportPage(http::ServiceMap& services) {
  http::Backend* const backend = services.backend.get();
  services.page_folders[kFolder] = [backend](const http::RequestHead& head) {
    return Answer(*backend, head);
  };
}

}  // namespace optfarm::server
