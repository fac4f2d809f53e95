// The one file of the libraries that precompiled.cmake makes; headers are all
// that they are for.
