#include "client_cli/local/local_report.h"

#include <cstdint>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::client_cli {
namespace {

// Names files by their digests, and finds them by these.
class NamedFiles {
 public:
  // Leaves the digest empty where the file cannot be read: the report goes
  // without it.
  void Add(const std::string& path, v1::Digest* digest) {
    const absl::StatusOr<uint64_t> size = FileSize(path);
    const absl::StatusOr<std::string> sha256 = Sha256OfFile(path);
    if (!size.ok() || !sha256.ok()) return;
    digest->set_size_bytes(static_cast<int64_t>(*size));
    digest->set_sha256(*sha256);
    paths_[*sha256] = path;
  }

  absl::StatusOr<std::string> Read(const v1::Digest& digest) const {
    const auto found = paths_.find(digest.sha256());
    if (found == paths_.end()) return absl::NotFoundError("no such file");
    return ReadFile(found->second);
  }

 private:
  std::map<std::string, std::string> paths_;
};

// The data, with digests of those files that a report may show: a folder may
// have many thousands.
void AddData(const optimize::LocalData& local, NamedFiles* files,
             v1::Job* job) {
  if (local.dataset.sources().empty()) return;
  std::set<std::string> samples;
  for (const auto& sample : job->report().worst_samples()) {
    samples.insert(sample.sample());
  }
  v1::Dataset& data = *job->mutable_spec()->mutable_calibration();
  data = local.dataset;
  for (int i = 0; i < data.sources_size(); ++i) {
    v1::DataSource& source = *data.mutable_sources(i);
    for (int k = 0; k < source.files_size(); ++k) {
      v1::DataFile& file = *source.mutable_files(k);
      if (samples.count(file.path()) > 0) {
        files->Add(local.PathOf(i, k), file.mutable_digest());
      }
    }
  }
}

void AddSpec(const JobRequest& request, NamedFiles* files, v1::Job* job) {
  const optimize::OptimizeRequest& work = request.work;
  v1::JobSpec& spec = *job->mutable_spec();
  spec.mutable_model()->set_name(BaseName(work.model_path));
  files->Add(work.model_path, spec.mutable_model()->mutable_digest());
  *spec.mutable_recipe() = work.recipe;
  if (work.model_origin) *spec.mutable_model_origin() = *work.model_origin;
  spec.mutable_inputs()->Add(work.inputs.begin(), work.inputs.end());
  spec.mutable_outputs()->Add(work.outputs.begin(), work.outputs.end());
  for (const int32_t threads : request.threads) {
    spec.mutable_benchmark()->add_threads(threads);
  }
  AddData(work.data, files, job);
}

}  // namespace

absl::StatusOr<std::string> LocalReport(const JobRequest& request,
                                        const std::string& folder,
                                        ReportFormat format, v1::Job job) {
  NamedFiles files;
  AddSpec(request, &files, &job);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListFolder(folder));
  for (const std::string& name : names) {
    v1::Artifact& artifact = *job.add_artifacts();
    artifact.set_name(name);
    files.Add(JoinPath(folder, name), artifact.mutable_digest());
  }
  return ReportText(job, format, [&files](const v1::Digest& digest) {
    return files.Read(digest);
  });
}

}  // namespace optfarm::client_cli
