// gomemcache against a server: `client ADDRESS`. It ends at the first wrong answer, saying which.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

var checks int

// check ends the program unless got is what was wanted.
func check(what string, got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		fmt.Printf("%s: %v instead of %v\n", what, got, wanted)
		os.Exit(1)
	}
	checks++
}

// fails ends the program unless err is the one that was wanted.
func fails(what string, err, wanted error) {
	if !errors.Is(err, wanted) {
		check(what, err, wanted)
	}
	checks++
}

func main() {
	client := memcache.New(os.Args[1])
	client.Timeout = 10 * time.Second
	value := func(key string) string {
		item, err := client.Get(key)
		fails("get "+key, err, nil)
		return string(item.Value)
	}

	fails("ping", client.Ping(), nil)
	fails("flush_all", client.FlushAll(), nil)
	_, err := client.Get("absent")
	fails("get of what is absent", err, memcache.ErrCacheMiss)
	fails("set", client.Set(&memcache.Item{Key: "key", Value: []byte("value"), Flags: 7}), nil)
	item, err := client.Get("key")
	fails("get", err, nil)
	check("value", string(item.Value), "value")
	check("flags", item.Flags, 7)

	fails("add of what is there", client.Add(&memcache.Item{Key: "key", Value: []byte("x")}), memcache.ErrNotStored)
	fails("add", client.Add(&memcache.Item{Key: "a", Value: []byte("1")}), nil)
	fails("replace of what is absent", client.Replace(&memcache.Item{Key: "b", Value: []byte("x")}), memcache.ErrNotStored)
	fails("replace", client.Replace(&memcache.Item{Key: "a", Value: []byte("11")}), nil)
	fails("append", client.Append(&memcache.Item{Key: "a", Value: []byte(">")}), nil)
	fails("prepend", client.Prepend(&memcache.Item{Key: "a", Value: []byte("<")}), nil)
	fails("append to what is absent", client.Append(&memcache.Item{Key: "b", Value: []byte(">")}), memcache.ErrNotStored)
	check("joined", value("a"), "<11>")
	fails("set b", client.Set(&memcache.Item{Key: "b", Value: []byte("2")}), nil)
	items, err := client.GetMulti([]string{"a", "b", "absent"})
	fails("multi-get", err, nil)
	check("items of a multi-get", len(items), 2)
	check("its second", string(items["b"].Value), "2")

	seen, err := client.Get("a")
	fails("gets", err, nil)
	late := *seen
	seen.Value = []byte("swapped")
	fails("cas", client.CompareAndSwap(seen), nil)
	late.Value = []byte("late")
	fails("cas too late", client.CompareAndSwap(&late), memcache.ErrCASConflict)
	check("swapped", value("a"), "swapped")
	fails("delete", client.Delete("a"), nil)
	fails("delete again", client.Delete("a"), memcache.ErrCacheMiss)
	fails("cas of what is gone", client.CompareAndSwap(&late), memcache.ErrCacheMiss)

	fails("set n", client.Set(&memcache.Item{Key: "n", Value: []byte("9")}), nil)
	number, err := client.Increment("n", 3)
	fails("incr", err, nil)
	check("incremented", number, 12)
	number, err = client.Decrement("n", 100)
	fails("decr", err, nil)
	check("decremented", number, 0)
	_, err = client.Increment("absent", 1)
	fails("incr of what is absent", err, memcache.ErrCacheMiss)
	_, err = client.Increment("key", 1)
	check("incr of text fails", err != nil, true)

	fails("touch", client.Touch("n", 100), nil)
	fails("touch of what is absent", client.Touch("absent", 100), memcache.ErrCacheMiss)
	item, err = client.GetAndTouch("key", 100)
	fails("gat", err, nil)
	check("gat's value", string(item.Value), "value")
	_, err = client.GetAndTouch("absent", 100)
	fails("gat of what is absent", err, memcache.ErrCacheMiss)
	fails("set for a second", client.Set(&memcache.Item{Key: "brief", Value: []byte("x"), Expiration: 1}), nil)
	_, err = client.Get("brief")
	for deadline := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
		_, err = client.Get("brief")
	}
	fails("get of what has expired", err, memcache.ErrCacheMiss)

	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	large := bytes.Repeat(binary, 4000)
	for key, stored := range map[string][]byte{"binary": binary, "large": large, "empty": {}} {
		fails("set "+key, client.Set(&memcache.Item{Key: key, Value: stored}), nil)
		check(key+" comes back", value(key) == string(stored), true)
	}
	err = client.Set(&memcache.Item{Key: "large", Value: bytes.Repeat(binary, 4200)})
	check("set of what is too large is refused", strings.Contains(fmt.Sprint(err), "object too large for cache"), true)
	_, err = client.Get("large")
	fails("get of what was refused", err, memcache.ErrCacheMiss)
	longest := strings.Repeat("k", 250)
	fails("set of the longest key", client.Set(&memcache.Item{Key: longest, Value: []byte("x")}), nil)
	check("the longest key", value(longest), "x")

	var workers sync.WaitGroup
	wrong := make(chan string, 8)
	for worker := range 8 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i := range 500 {
				key := fmt.Sprintf("worker.%d.%d", worker, i)
				if err := client.Set(&memcache.Item{Key: key, Value: []byte(key)}); err != nil {
					wrong <- fmt.Sprint("set ", key, ": ", err)
					return
				}
				if item, err := client.Get(key); err != nil || string(item.Value) != key {
					wrong <- fmt.Sprint("get ", key, ": ", item, err)
					return
				}
			}
		}()
	}
	workers.Wait()
	close(wrong)
	for answer := range wrong {
		check("eight workers", answer, "")
	}
	fails("flush_all", client.FlushAll(), nil)
	_, err = client.Get("key")
	fails("get after flush_all", err, memcache.ErrCacheMiss)
	fmt.Printf("%d answers were right\n", checks)
}
