// Jobs, tasks and events in words and rows, shared by get, list and watch.

#ifndef OPTFARM_CLIENT_CLI_TABLES_JOB_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_JOB_TEXT_H_

#include <string>
#include <vector>

#include "client_cli/tables/table.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

// For people to the second in their words, for programs as RFC 3339; empty for
// a time that is not set.
Cell TimeCell(const google::protobuf::Timestamp& timestamp);

// "optimize", or "benchmark on pi4".
std::string TaskTitle(const v1::Task& task);

// "READY", "DONE": the task state's name without the "TASK_" that only the
// contract needs.
std::string TaskStateName(v1::TaskState state);

// The recipe's name, wherever it stands.
std::string RecipeName(const v1::JobSpec& spec);

// job_id, state, recipe, model, model_sha256, devices, created, seconds, name,
// and the verdict that matters most with its reason. A narrow one fits into 80
// columns.
Table MakeJobsTable(const std::vector<v1::Job>& jobs);

// task_id, task, state, holder, attempt, failed_attempts, progress, note.
Table MakeTasksTable(const v1::Job& job);

// One line about an event without its time, or "" for a log event:
// "job RUNNING", "optimize LEASED: attempt 2 on w1", "optimize 40%
// calibrating".
std::string EventText(const v1::JobEvent& event);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_JOB_TEXT_H_
