package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/magiconair/properties"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// orderNamespace is where the name servers keep the settings of ordered topics.
const orderNamespace = "ORDER_TOPIC_CONFIG"

// setting is one row of what name servers keep or have in force.
type setting struct {
	Addr  string `json:"namesrv"`
	Key   string `json:"key"`
	Value string `json:"value"`
}

// showSettings shows settings of all name servers; missing is what is said when
// none has any.
func (a *admin) showSettings(missing error, read func(addr string) (map[string]string, error)) error {
	doc := []setting{}
	var rows []table.Row
	err := a.eachName(func(addr string) error {
		all, err := read(addr)
		for _, key := range sortedKeys(all) {
			doc = append(doc, setting{addr, key, all[key]})
			rows = append(rows, table.Row{addr, key, all[key]})
		}
		return err
	})
	if err == nil && len(rows) == 0 && missing != nil {
		return missing
	}
	return a.showUnless(err, doc, table.Row{"name server", "key", "value"}, rows)
}

// namespace reads what one name server keeps in a namespace; nothing is no error.
func (a *admin) namespace(ctx context.Context, addr, namespace string) (map[string]string, error) {
	var t protocol.KVTable
	err := a.askBody(ctx, addr, protocol.GetKVListByNamespace, &protocol.KVNamespaceHeader{Namespace: namespace}, &t)
	if errors.Is(err, mq.ErrNotFound) {
		err = nil
	}
	return t.Table, err
}

func namesrvKVCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kv",
		Short: "List, show, set and delete what the name servers keep for others, by namespace and key",
	}
	list := &cobra.Command{
		Use: "list NAMESPACE", Short: "List the keys and values of a namespace", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showSettings(notFound("namespace %s is empty", args[0]), func(addr string) (map[string]string, error) {
				return a.namespace(cmd.Context(), addr, args[0])
			})
		},
	}
	get := &cobra.Command{
		Use: "get NAMESPACE KEY", Short: "Show the value of a key", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showSettings(notFound("namespace %s has no key %s", args[0], args[1]), func(addr string) (map[string]string, error) {
				return a.keptValue(cmd.Context(), addr, args[0], args[1])
			})
		},
	}
	put := &cobra.Command{
		Use: "put NAMESPACE KEY VALUE", Short: "Set the value of a key", Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error { return a.keep(cmd, args[0], args[1], args[2]) },
	}
	remove := &cobra.Command{
		Use: "delete NAMESPACE KEY", Short: "Delete a key", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.drop(cmd, args[0], args[1]) },
	}
	cmd.AddCommand(describe(list, []setting{}), describe(get, []setting{}), a.changes(put), a.destroys(remove))
	return cmd
}

// keptValue reads the value of a key; that it is not there is no error.
func (a *admin) keptValue(ctx context.Context, addr, namespace, key string) (map[string]string, error) {
	var r protocol.KVResponse
	err := a.askFields(ctx, addr, protocol.GetKVConfig, &protocol.KVKeyHeader{Namespace: namespace, Key: key}, &r)
	if errors.Is(err, mq.ErrNotFound) || err == nil && r.Value == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]string{key: *r.Value}, nil
}

// keep sets the value of a key in all name servers.
func (a *admin) keep(cmd *cobra.Command, namespace, key, value string) error {
	steps, err := a.nameSteps(fmt.Sprintf("set %s of %s to %s", key, namespace, value), func(ctx context.Context, addr string) (string, error) {
		_, err := a.ask(ctx, addr, protocol.PutKVConfig, &protocol.KVHeader{Namespace: namespace, Key: key, Value: value}, nil)
		return fmt.Sprintf("%s is %s", key, value), err
	})
	if err != nil {
		return err
	}
	return a.carryOut(cmd, "", steps)
}

// drop deletes a key in all name servers that have it.
func (a *admin) drop(cmd *cobra.Command, namespace, key string) error {
	var steps []step
	err := a.eachName(func(addr string) error {
		value, err := a.keptValue(cmd.Context(), addr, namespace, key)
		if err != nil || value == nil {
			return err
		}
		steps = append(steps, step{Where: addr, What: fmt.Sprintf("delete %s of %s, which is %s", key, namespace, value[key]), do: func(ctx context.Context) (string, error) {
			_, err := a.ask(ctx, addr, protocol.DeleteKVConfig, &protocol.KVKeyHeader{Namespace: namespace, Key: key}, nil)
			return key + " is deleted", err
		}})
		return nil
	})
	if err != nil {
		return err // whoever cannot be asked would keep it
	}
	if len(steps) == 0 {
		return notFound("namespace %s has no key %s", namespace, key)
	}
	return a.carryOut(cmd, fmt.Sprintf("Delete %s of %s?", key, namespace), steps)
}

func namesrvOrderCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "order",
		Short: "Show, set and delete how many queues of ordered topics are on which broker",
		Long: `Keeps in the name servers which queues an ordered topic has, as in broker-a:4;broker-b:4,
whether or not those brokers are there. Clients are told with orderMessageEnable=true
(namesrv config set).`,
	}
	show := &cobra.Command{
		Use: "show [TOPIC]", Short: "Show the order of a topic, or of all that have one", Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.showSettings(nil, func(addr string) (map[string]string, error) { return a.namespace(cmd.Context(), addr, orderNamespace) })
			}
			return a.showSettings(notFound("topic %s has no order", args[0]), func(addr string) (map[string]string, error) {
				return a.keptValue(cmd.Context(), addr, orderNamespace, args[0])
			})
		},
	}
	set := &cobra.Command{
		Use: "set TOPIC BROKER:QUEUES;...", Short: "Set the order of a topic", Args: cobra.ExactArgs(2), ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOrder(args[1]); err != nil {
				return &usageError{err}
			}
			return a.keep(cmd, orderNamespace, args[0], args[1])
		},
	}
	remove := &cobra.Command{
		Use: "delete TOPIC", Short: "Delete the order of a topic", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.drop(cmd, orderNamespace, args[0]) },
	}
	cmd.AddCommand(describe(show, []setting{}), a.changes(set), a.destroys(remove))
	return cmd
}

// checkOrder holds what clients do with an order against it: they split it at ; and
// at : and take the second part for a number, and fail on anything else.
func checkOrder(text string) error {
	for part := range strings.SplitSeq(text, ";") {
		name, queues, _ := strings.Cut(part, ":")
		if n, err := strconv.Atoi(queues); name == "" || err != nil || n < 1 {
			return fmt.Errorf("%q is no order: %q is not BROKER:QUEUES, as in broker-a:4;broker-b:4", text, part)
		}
	}
	return nil
}

func namesrvConfigCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show and change settings of running name servers"}
	get := &cobra.Command{
		Use: "get [KEY...]", Short: "Show the settings in force, or some of them",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showSettings(notFound("no name server has a setting %s", strings.Join(args, " or ")), func(addr string) (map[string]string, error) {
				resp, err := a.ask(cmd.Context(), addr, protocol.GetNamesrvConfig, nil, nil)
				if err != nil {
					return nil, err
				}
				loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
				p, err := loader.LoadBytes(resp.Body)
				if err != nil {
					return nil, fmt.Errorf("what %s has in force cannot be read: %w", addr, err)
				}
				all := p.Map()
				if len(args) == 0 {
					return all, nil
				}
				some := map[string]string{}
				for _, key := range args {
					if value, has := all[key]; has {
						some[key] = value
					}
				}
				return some, nil
			})
		},
	}
	set := &cobra.Command{
		Use:   "set KEY=VALUE...",
		Short: "Change settings while the name servers run",
		Long: `Changes settings at once and for good. Sundial's name server takes those that take
effect, refuses the others and changes nothing then; RocketMQ's stores any key that it
knows, and most count at its next start only.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := properties.NewProperties()
			p.DisableExpansion = true
			for _, arg := range args {
				key, value, found := strings.Cut(arg, "=")
				if key = strings.TrimSpace(key); !found || key == "" {
					return &usageError{fmt.Errorf("%q is not KEY=VALUE", arg)}
				}
				if _, _, err := p.Set(key, strings.TrimSpace(value)); err != nil {
					return &usageError{fmt.Errorf("%q: %w", arg, err)}
				}
			}
			var body strings.Builder
			if _, err := p.Write(&body, properties.UTF8); err != nil {
				return err
			}
			what := strings.Join(args, " ")
			steps, err := a.nameSteps("set "+what, func(ctx context.Context, addr string) (string, error) {
				_, err := a.ask(ctx, addr, protocol.UpdateNamesrvConfig, nil, []byte(body.String()))
				return what + " is in force", err
			})
			if err != nil {
				return err
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	cmd.AddCommand(describe(get, []setting{}), a.changes(set))
	return cmd
}
