// What the events of tasks say in words that others look for.

#ifndef OPTFARM_SERVER_CONVENTIONS_TASK_EVENTS_H_
#define OPTFARM_SERVER_CONVENTIONS_TASK_EVENTS_H_

namespace optfarm::server {

// How the message of a task begins that its holder gave back: READY, and
// perhaps with the failure of an attempt before.
inline constexpr char kHandedBack[] = "handed back: ";

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_CONVENTIONS_TASK_EVENTS_H_
