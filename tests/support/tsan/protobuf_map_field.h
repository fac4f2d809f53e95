// Gives messages with maps the layout that the system's protobuf compiled in:
// under ThreadSanitizer its header adds two counters to every map field, which
// the library, built without it, does not know, so that reflection (graphs as
// text above all) would read members where they are not. Preset tsan includes
// this file first wherever messages are used.

#ifndef OPTFARM_TESTS_SUPPORT_TSAN_PROTOBUF_MAP_FIELD_H_
#define OPTFARM_TESTS_SUPPORT_TSAN_PROTOBUF_MAP_FIELD_H_

// The standard library asks the same macro, once, and is to know of it.
#include <memory>

#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")

#endif  // OPTFARM_TESTS_SUPPORT_TSAN_PROTOBUF_MAP_FIELD_H_
