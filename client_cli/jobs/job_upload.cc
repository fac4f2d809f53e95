#include "client_cli/jobs/job_upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/jobs/calibration_files.h"
#include "engine/optimize/samples/array_file.h"

namespace optfarm::client_cli {
namespace {

class Uploader {
 public:
  Uploader(const JobRequest& request, const TransferProgress& progress)
      : request_(request), progress_(progress) {}

  absl::StatusOr<JobUpload> Run() && {
    v1::JobSpec& spec = upload_.spec;
    upload_.remarks = request_.remarks;
    OPTFARM_RETURN_IF_ERROR(
        AddNamed(request_.model_path, spec.mutable_model()));
    // Built-in ones too: what was checked here is what runs, whichever version
    // the worker has and before any worker has joined.
    *spec.mutable_recipe() = request_.recipe;
    if (request_.model_origin) {
      *spec.mutable_model_origin() = *request_.model_origin;
    }
    for (const v1::TensorSpec& input : request_.inputs) {
      *spec.add_inputs() = input;
    }
    for (const std::string& output : request_.outputs) {
      spec.add_outputs(output);
    }
    if (!request_.labels_path.empty()) {
      const std::string file = optimize::SplitMember(request_.labels_path).file;
      OPTFARM_RETURN_IF_ERROR(AddNamed(file, spec.mutable_labels()));
      // With the feature of a record file.
      spec.mutable_labels()->set_name(BaseName(request_.labels_path));
    }
    OPTFARM_RETURN_IF_ERROR(AddCalibration());
    for (const int32_t threads : request_.threads) {
      spec.mutable_benchmark()->add_threads(threads);
    }
    return std::move(upload_);
  }

 private:
  absl::Status AddCalibration() {
    if (request_.calibration_folder.empty() &&
        request_.calibration_arrays.empty()) {
      return absl::OkStatus();
    }
    v1::Dataset& data = *upload_.spec.mutable_calibration();
    data.set_input_mean(request_.input_mean.value_or(0));
    // 0 tells that neither was given.
    data.set_input_std(
        request_.input_std.value_or(request_.input_mean.has_value() ? 1 : 0));
    data.set_labels_offset(static_cast<int32_t>(request_.labels_offset));
    OPTFARM_RETURN_IF_ERROR(AddFolder(&data));
    for (const auto& [input, path] : request_.calibration_arrays) {
      v1::DatasetFile& file = *data.add_files();
      // A numbered folder keeps equal file names apart, and the order.
      const optimize::FileMember from = optimize::SplitMember(path);
      file.set_path(
          absl::StrCat("arrays/", data.files_size(), "/", BaseName(from.file)));
      file.set_input(input);
      file.set_member(from.member);
      OPTFARM_RETURN_IF_ERROR(AddFile(from.file, file.mutable_digest()));
    }
    return absl::OkStatus();
  }

  absl::Status AddFolder(v1::Dataset* data) {
    const std::string& folder = request_.calibration_folder;
    if (folder.empty()) return absl::OkStatus();
    absl::StatusOr<CalibrationFiles> found = FindCalibrationFiles(folder);
    if (!found.ok()) return Annotate(found.status(), "--calibration");
    for (const std::string& path : found->paths) {
      v1::DatasetFile& file = *data->add_files();
      file.set_path(path);
      OPTFARM_RETURN_IF_ERROR(
          AddFile(JoinPath(folder, path), file.mutable_digest()));
      progress_(data->files_size(), static_cast<int64_t>(found->paths.size()));
    }
    if (found->others > 0) {
      upload_.remarks.push_back(
          absl::StrCat("Left out of '", folder, "': ", found->others,
                       found->others == 1 ? " file that is" : " files that are",
                       " neither picture, sound nor record file."));
    }
    return absl::OkStatus();
  }

  absl::Status AddNamed(const std::string& path, v1::NamedBlob* blob) {
    blob->set_name(BaseName(path));
    return AddFile(path, blob->mutable_digest());
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

}  // namespace optfarm::client_cli
