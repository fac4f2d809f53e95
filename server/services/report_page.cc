#include "server/services/report_page.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "http/url_text.h"
#include "job_report/html_parts.h"
#include "job_report/html_report.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/models.pb.h"
#include "server/services/web_page.h"

namespace optfarm::server {
namespace {

constexpr char kFolder[] = "/report/";
constexpr char kGetJob[] = "/optfarm.v1.JobService/GetJob";
constexpr char kReportDownload[] = "/optfarm.v1.ModelService/Download";
constexpr absl::Duration kCallTime = absl::Seconds(30);

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
    if (bytes.size() > job_report::kMostHtmlBytes) break;
  }
  OPTFARM_RETURN_IF_ERROR(stream->Finish());
  return bytes;
}

absl::StatusOr<std::string> MakeReport(http::Backend& backend,
                                       const http::RequestHead& head) {
  if (job_report::ReportHtmlParts().head.empty()) {
    return absl::NotFoundError("this server was built without the web page");
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string job_id,
      http::PercentDecode(
          absl::string_view(head.path).substr(sizeof(kFolder) - 1), false));
  OPTFARM_ASSIGN_OR_RETURN(v1::Job job, GetJob(backend, head, job_id));
  return job_report::HtmlReport(std::move(job),
                                [&backend, &head](const v1::Digest& digest) {
                                  return Download(backend, head, digest);
                                });
}

http::Reply Answer(http::Backend& backend, const http::RequestHead& head) {
  absl::StatusOr<std::string> report = MakeReport(backend, head);
  if (!report.ok()) return http::Problem(report.status());
  http::Reply reply;
  reply.content_type = "text/html; charset=utf-8";
  reply.body = *std::move(report);
  reply.headers = {
      {"Content-Security-Policy",
       absl::StrCat(job_report::ReportHtmlParts().policy,
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
