// What a model's classes are called, where a job's labels say it.

#ifndef OPTFARM_CLIENT_CLI_JOBS_CLASS_NAMES_H_
#define OPTFARM_CLIENT_CLI_JOBS_CLASS_NAMES_H_

#include <string>
#include <vector>

#include "client_cli/command/farm_client.h"
#include "client_cli/jobs/job_request.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {

// Names by class number, as the optimizer took them
// (optimize/samples/labels.h): the lines of `labels`, the text of the labels
// file, where folders of samples are named after them; without such a file the
// folders in sorted order. Empty where the report has no accuracy, and where
// labels are numbers.
std::vector<std::string> ClassNames(const v1::Report& report,
                                    const v1::Dataset& data,
                                    const std::string& labels);

// The same with the labels file from the job's server. Without one that cannot
// be had: it is for people, and numbers do.
std::vector<std::string> ClassNamesFromServer(const v1::Job& job,
                                              FarmClient& client);

// The same with the file on this machine; else the names that the model's file
// carries (graph/model_notes.h), as far as `model_path` is a model of ONNX or
// TensorFlow Lite.
std::vector<std::string> ClassNamesHere(const v1::Report& report,
                                        const JobRequest& request);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_CLASS_NAMES_H_
