#include "client_cli/jobs/job_upload.h"

#include <utility>

#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/flags/exit_code.h"

namespace optfarm::client_cli {
namespace {

class Uploader {
 public:
  Uploader(const JobRequest& request, const TransferProgress& progress)
      : request_(request), progress_(progress) {}

  absl::StatusOr<JobUpload> Run() && {
    const optimize::OptimizeRequest& work = request_.work;
    v1::JobSpec& spec = upload_.spec;
    upload_.remarks = request_.remarks;
    spec.mutable_model()->set_name(BaseName(work.model_path));
    OPTFARM_RETURN_IF_ERROR(
        AddFile(work.model_path, spec.mutable_model()->mutable_digest()));
    // Built-in ones too: what was checked here is what runs, whichever version
    // the worker has and before any worker has joined.
    *spec.mutable_recipe() = work.recipe;
    if (work.model_origin) *spec.mutable_model_origin() = *work.model_origin;
    spec.mutable_inputs()->Add(work.inputs.begin(), work.inputs.end());
    spec.mutable_outputs()->Add(work.outputs.begin(), work.outputs.end());
    spec.mutable_out_formats()->Add(work.out_formats.begin(),
                                    work.out_formats.end());
    OPTFARM_RETURN_IF_ERROR(AddData());
    for (const int32_t threads : request_.threads) {
      spec.mutable_benchmark()->add_threads(threads);
    }
    return std::move(upload_);
  }

 private:
  // The data as they are, and the digests of their files.
  absl::Status AddData() {
    const optimize::LocalData& local = request_.work.data;
    if (local.dataset.sources().empty()) return absl::OkStatus();
    v1::Dataset& data = *upload_.spec.mutable_calibration();
    data = local.dataset;
    for (int i = 0; i < data.sources_size(); ++i) {
      v1::DataSource& source = *data.mutable_sources(i);
      for (int k = 0; k < source.files_size(); ++k) {
        v1::DataFile& file = *source.mutable_files(k);
        OPTFARM_RETURN_IF_ERROR(
            AddFile(local.PathOf(i, k), file.mutable_digest()));
        if (source.role() == v1::DataSource::SAMPLES) {
          progress_(k + 1, source.files_size());
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddFile(const std::string& path, v1::Digest* digest) {
    OPTFARM_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
    OPTFARM_ASSIGN_OR_RETURN(*digest->mutable_sha256(), Sha256OfFile(path));
    digest->set_size_bytes(static_cast<int64_t>(size));
    upload_.files.push_back({path, *digest});
    return absl::OkStatus();
  }

  const JobRequest& request_;
  const TransferProgress& progress_;
  JobUpload upload_;
};

}  // namespace

absl::StatusOr<JobUpload> MakeJobUpload(const JobRequest& request,
                                        const TransferProgress& progress) {
  absl::StatusOr<JobUpload> upload = Uploader(request, progress).Run();
  if (!upload.ok()) return WithExitCode(upload.status(), ExitCode::kUsage);
  return upload;
}

absl::StatusOr<v1::SubmitJobResponse> SubmitWithFiles(
    FarmClient& client, const v1::SubmitJobRequest& request,
    const std::vector<FileToUpload>& files, const TransferProgress& progress) {
  absl::StatusOr<v1::SubmitJobResponse> response = client.Submit(request);
  if (!absl::IsFailedPrecondition(response.status())) return response;
  OPTFARM_RETURN_IF_ERROR(client.Upload(files, progress).status());
  return client.Submit(request);
}

}  // namespace optfarm::client_cli
