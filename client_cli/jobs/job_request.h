// What submit and run have in common: the flags that describe a job, and the
// checks that need no server and little time.

#ifndef OPTFARM_CLIENT_CLI_JOBS_JOB_REQUEST_H_
#define OPTFARM_CLIENT_CLI_JOBS_JOB_REQUEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client_cli/command/interrupt_cleanup.h"
#include "client_cli/flags/flags.h"
#include "client_cli/jobs/data_flags.h"
#include "engine/optimize/optimize_job.h"

namespace optfarm::client_cli {

// As typed.
struct JobFlags {
  std::string model;
  std::string checkpoint;
  std::string tags;
  std::string signature;
  std::string recipe;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  DataFlags data;
  std::vector<int32_t> threads;
  bool dequantize = false;
  bool sensitivity = false;
  std::vector<std::string> histograms;
  std::vector<std::string> out_formats;
  std::string out_graph;

  void Declare(FlagSet* flags);
  // The model, and what it is fed and compared with, alone.
  void DeclareModel(FlagSet* flags);
  void DeclareData(FlagSet* flags);
};

// As understood: every file is there, the model is a graph that has the named
// inputs and outputs, the recipe exists.
struct JobRequest {
  // What the optimizer is asked to do. Where its files go, threads and version
  // are left to whoever runs it.
  optimize::OptimizeRequest work;
  // Holds the model when it was frozen here. OWNERSHIP: shared by copies.
  std::shared_ptr<InterruptCleanup> model_folder;
  // What the user should know, one sentence each.
  std::vector<std::string> remarks;
  // Format of the file --out_graph.
  v1::ModelFormat out_graph_format = v1::PB;
  // Thread counts to measure.
  std::vector<int32_t> threads;
};

// ERRORS: marked kUsage, naming the flag, its value and what is wrong with it
// (with the nearest names for recipe, inputs and outputs).
// A model that is not a frozen graph is frozen into `scratch`, a folder of the
// caller's, or into one that lives as long as the request.
absl::StatusOr<JobRequest> CheckJobFlags(const JobFlags& flags,
                                         const std::string& scratch = "");

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_JOB_REQUEST_H_
